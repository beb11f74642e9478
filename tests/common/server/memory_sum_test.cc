// Adds terms and reads the table and the refusal.
#include "common/server/memory_sum.h"

#include <limits>

#include "gmock/gmock.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

MemorySum NodeSum() {
  MemorySum sum;
  sum.Add("host pool", ByteSize::MiB(256), "host_pool_bytes");
  sum.Add("index", ByteSize::MiB(40), "blocks_max");
  sum.Add("program", ByteSize::MiB(300));
  return sum;
}

TEST(MemorySumTest, TheTableHasEachTermWithItsFlagAndTheSum) {
  EXPECT_EQ(NodeSum().Table(),
            "  host pool                               256.0 MiB  --host_pool_bytes\n"
            "  index                                    40.0 MiB  --blocks_max\n"
            "  program                                 300.0 MiB\n"
            "  sum                                     596.0 MiB\n");
  EXPECT_EQ(NodeSum().total(), ByteSize::MiB(596));
}

TEST(MemorySumTest, ASumOfExactlyTheLimitIsOk) {
  EXPECT_TRUE(NodeSum().CheckWithin(ByteSize::MiB(596), "memory_limit").ok());
}

TEST(MemorySumTest, OneByteMoreIsRefusedWithTheTableAndWhatToChange) {
  const absl::Status status =
      NodeSum().CheckWithin(ByteSize(ByteSize::MiB(596).bytes() - 1), "memory_limit");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("1 bytes more than --memory_limit=624951295B"),
                    HasSubstr("lower --host_pool_bytes (256MiB) or raise --memory_limit\n"),
                    HasSubstr(NodeSum().Table())));
}

TEST(MemorySumTest, WithoutAFlagToLowerTheLimitIsToBeRaised) {
  MemorySum sum;
  sum.Add("program", ByteSize::MiB(300));
  EXPECT_THAT(std::string(sum.CheckWithin(ByteSize::MiB(1), "memory_limit").message()),
              HasSubstr("=1MiB: raise --memory_limit\n"));
}

TEST(MemorySumTest, TermsThatOverflowStayTooMuch) {
  MemorySum sum;
  for (int i = 0; i < 4; ++i) sum.Add("huge", ByteSize(std::numeric_limits<int64_t>::max()));
  EXPECT_EQ(sum.total(), ByteSize(std::numeric_limits<int64_t>::max()));
  EXPECT_FALSE(sum.CheckWithin(ByteSize::GiB(1), "memory_limit").ok());
}

}  // namespace
}  // namespace cairn
