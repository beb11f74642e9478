// kill -9 at any moment, in loops under a seed. A child (disk_tier_child) uses the tier and dies in
// the middle of a disk call, which may be one of opening, writing, finishing, dropping, or of the
// ledger. The test holds what the next start finds against what the child had been answered, and
// starts the next child on the same folder.
#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/cache_node/tiers/disk/disk_lives_fixture.h"
#include "tests/testing/child_process.h"

namespace cairn::testing {
namespace {

constexpr int kKills = 30;
constexpr uint64_t kCallsMax = 400;
constexpr uint64_t kNumbersPerChild = 1'000'000;

class DiskKillTest : public DiskLivesFixture {
 protected:
  void RunChildUntilKilled(uint64_t seed, uint64_t kill_at, uint64_t first) {
    ChildProcess::Options options;
    options.command = {std::string(CAIRN_BIN_DIR) + "/disk_tier_child", options_.directory,
                       absl::StrCat(seed), absl::StrCat(kill_at), absl::StrCat(first)};
    options.log_path = options_.directory + ".log";
    options.talk = true;
    auto child = ChildProcess::Start(options);
    ASSERT_TRUE(child.ok()) << child.status();
    for (;;) {
      const absl::StatusOr<std::string> line = (*child)->ReadLine(absl::Seconds(60));
      if (absl::IsUnavailable(line.status())) break;
      ASSERT_TRUE(line.ok()) << line.status();
      model_.Learn(*line);
    }
    EXPECT_EQ((*child)->WaitExit(absl::Seconds(60)), -SIGKILL) << (*child)->Log();
    std::filesystem::remove(options.log_path);
  }
};

TEST_F(DiskKillTest, EveryStartFindsWhatWasAnsweredAndNothingElse) {
  std::mt19937_64 random(20261130);
  for (uint64_t i = 0; i < kKills && !HasFailure(); ++i) {
    const uint64_t kill_at = 1 + random() % kCallsMax, seed = random();
    SCOPED_TRACE(absl::StrCat("kill ", i, ", at call ", kill_at, ", seed ", seed));
    RunChildUntilKilled(seed, kill_at, i * kNumbersPerChild);
    CheckWhatIsThere();
  }
  // The run was worth something.
  EXPECT_GT(model_.files(), 50u);
  EXPECT_GT(records_, 500);
  EXPECT_GT(model_.fenced(), 0u);
}

}  // namespace
}  // namespace cairn::testing
