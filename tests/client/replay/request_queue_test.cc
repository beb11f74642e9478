// One thread that pushes and this one that pops; what must wait is shown by what comes in between.
#include "client/replay/request_queue.h"

#include <gmock/gmock.h>

#include <thread>

namespace cairn::replay {
namespace {

TraceRequest Numbered(uint64_t number) {
  TraceRequest request;
  request.output_tokens = number;
  return request;
}

TEST(RequestQueue, GivesRequestsInTheirOrder) {
  RequestQueue queue(2);
  std::thread reader([&] {
    for (uint64_t i = 0; i < 100; ++i) EXPECT_TRUE(queue.Push(Numbered(i)));
    queue.End();
  });
  for (uint64_t i = 0; i < 100; ++i) EXPECT_EQ(queue.Pop()->output_tokens, i);
  EXPECT_FALSE(queue.Pop().has_value());
  reader.join();
}

TEST(RequestQueue, GivesWhatItHoldsAfterTheEnd) {
  RequestQueue queue(2);
  EXPECT_TRUE(queue.Push(Numbered(1)));
  queue.End();
  EXPECT_TRUE(queue.Pop().has_value());
  EXPECT_FALSE(queue.Pop().has_value());
}

TEST(RequestQueue, EndingItLetsGoOfWhoWaitsForRoom) {
  RequestQueue queue(1);
  EXPECT_TRUE(queue.Push(Numbered(1)));
  std::thread reader([&] { EXPECT_FALSE(queue.Push(Numbered(2))); });
  queue.End();
  reader.join();
}

}  // namespace
}  // namespace cairn::replay
