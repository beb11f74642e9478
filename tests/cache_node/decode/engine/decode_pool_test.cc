// Every task of every run is done once, whatever the threads do, and no run waits for threads that
// sleep. Runs come close together and after pauses that are as long as other work takes.
#include "cache_node/decode/engine/decode_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace cairn::node {
namespace {

struct Counts {
  explicit Counts(uint32_t tasks) : of(tasks) {}
  static void Task(void* context, uint32_t index) {
    static_cast<Counts*>(context)->of[index].fetch_add(1);
  }
  std::vector<std::atomic<uint32_t>> of;
};

TEST(DecodePoolTest, EachTaskRunsOnce) {
  for (const uint32_t workers : {1u, 2u, 5u}) {
    DecodePool pool(workers, absl::Microseconds(workers == 2 ? 0 : 20));
    EXPECT_EQ(pool.workers(), workers);
    for (uint32_t run = 0; run < 2000; ++run) {
      Counts counts(run % 9);
      pool.Run(run % 9, &Counts::Task, &counts);
      for (const std::atomic<uint32_t>& count : counts.of) ASSERT_EQ(count.load(), 1u);
    }
  }
}

TEST(DecodePoolTest, AFreshPoolsThreadsSleepAndTheirTasksAreDone) {
  for (int i = 0; i < 50; ++i) {
    DecodePool pool(4);
    Counts counts(4);
    pool.Run(4, &Counts::Task, &counts);
    for (const std::atomic<uint32_t>& count : counts.of) ASSERT_EQ(count.load(), 1u);
  }
}

}  // namespace
}  // namespace cairn::node
