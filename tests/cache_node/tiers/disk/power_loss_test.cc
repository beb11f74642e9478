// The power goes at any moment, in loops under a seed: a driver uses the tier until its disk is
// gone, then what was not synced is lost, and the next start is held against what the driver had
// been answered. Whatever was answered is there, whatever else is there is right.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/cache_node/tiers/disk/disk_lives_fixture.h"
#include "tests/cache_node/tiers/disk/disk_tier_driver.h"
#include "tests/testing/power_loss_file_system.h"

namespace cairn::testing {
namespace {

constexpr uint64_t kLosses = 30;
constexpr uint64_t kChangesMax = 250;
constexpr uint64_t kNumbersPerLife = 1'000'000;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class PowerLossTest : public DiskLivesFixture {
 protected:
  PowerLossTest()
      : system_(std::make_shared<PowerLossFileSystem>(rocksdb::FileSystem::Default(),
                                                      options_.directory + ".attic")) {
    options_.file_system = system_;
  }

  // Opening may meet the cut too.
  void RunUntilCut(uint64_t cut_after, uint64_t seed, uint64_t first) {
    system_->CutAfter(cut_after);
    Reopen();
    ASSERT_NE(tier_, nullptr);
    DiskTierDriver driver(tier_.get(), seed, first,
                          [this](const std::string& line) { model_.Learn(line); });
    absl::Status status = driver.Recover();
    while (status.ok()) status = driver.Step();
    EXPECT_TRUE(system_->is_off()) << status;
    tier_.reset();
  }

  std::shared_ptr<PowerLossFileSystem> system_;
};

TEST_F(PowerLossTest, EveryStartFindsWhatWasAnsweredAndNothingWrong) {
  const uint64_t seed = FromEnvironment("CAIRN_TEST_SEED", 20261130);
  const uint64_t losses = FromEnvironment("CAIRN_TEST_LOSSES", kLosses);
  std::cerr << "CAIRN_TEST_SEED=" << seed << " CAIRN_TEST_LOSSES=" << losses << "\n";
  std::mt19937_64 random(seed);
  uint64_t lost = 0;
  for (uint64_t i = 0; i < losses && !HasFailure(); ++i) {
    const uint64_t cut_after = 1 + random() % kChangesMax;
    // Some lose all that they may.
    const bool worst = random() % 3 == 0;
    SCOPED_TRACE(absl::StrCat("loss ", i, ", at change ", cut_after, worst ? ", the worst" : ""));
    ASSERT_NO_FATAL_FAILURE(RunUntilCut(cut_after, random(), i * kNumbersPerLife));
    lost += system_->Lose([&](uint64_t bound) { return worst ? 0 : random() % bound; });
    CheckWhatIsThere();
  }
  // The run was worth something.
  EXPECT_GT(lost, losses / 2);
  EXPECT_GT(model_.files(), losses);
  EXPECT_GT(records_, static_cast<int>(10 * losses));
  EXPECT_GT(model_.fenced(), 0u);
}

}  // namespace
}  // namespace cairn::testing
