// Sizes of blocks and what layouts come of them.
#include "client/replay/replay_namespace.h"

#include <gmock/gmock.h>

namespace cairn::replay {
namespace {

using ::testing::HasSubstr;

TEST(ReplayNamespace, BlocksHaveExactlyTheSizeAskedFor) {
  struct Case {
    uint32_t block_tokens;
    uint64_t block_bytes;
  };
  for (const Case& one :
       {Case{512, 4096}, {512, 1024}, {64, 4096}, {64, 128}, {16, 4096}, {16, 64}, {1, 64}}) {
    const auto handle = MakeReplayNamespace(one.block_tokens, one.block_bytes);
    ASSERT_TRUE(handle.ok()) << handle.status();
    EXPECT_EQ(handle->block_bytes(), one.block_bytes);
    EXPECT_EQ(handle->block_tokens(), one.block_tokens);
    EXPECT_EQ(handle->payload_map().segment_count(), 1u);
  }
}

TEST(ReplayNamespace, TheSameSizesGiveTheSameNamespace) {
  EXPECT_EQ(MakeReplayNamespace(16, 4096)->fingerprint(),
            MakeReplayNamespace(16, 4096)->fingerprint());
  EXPECT_NE(MakeReplayNamespace(16, 4096)->fingerprint(),
            MakeReplayNamespace(16, 2048)->fingerprint());
}

TEST(ReplayNamespace, OneNodeTakesReplaysOfSeveralSizes) {
  EXPECT_EQ(MakeReplayNamespace(16, 4096)->name(), MakeReplayNamespace(16, 4096)->name());
  EXPECT_NE(MakeReplayNamespace(16, 4096)->name(), MakeReplayNamespace(512, 4096)->name());
  EXPECT_NE(MakeReplayNamespace(16, 4096)->name(), MakeReplayNamespace(16, 2048)->name());
}

TEST(ReplayNamespace, SizesThatCannotBeSayWhatCan) {
  EXPECT_THAT(std::string(MakeReplayNamespace(512, 1000).status().message()),
              HasSubstr("they have 1024 to"));
  EXPECT_THAT(std::string(MakeReplayNamespace(64, 4100).status().message()),
              HasSubstr("the nearest is 4096"));
  EXPECT_TRUE(absl::IsInvalidArgument(MakeReplayNamespace(0, 4096).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(MakeReplayNamespace(16, UINT64_MAX).status()));
}

}  // namespace
}  // namespace cairn::replay
