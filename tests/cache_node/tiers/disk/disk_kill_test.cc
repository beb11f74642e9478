// kill -9 at any moment, in loops under a seed. A child (disk_tier_child) uses the tier and dies in
// the middle of a disk call, which may be one of opening, writing, finishing, dropping, or of the
// ledger. The test holds what the next start finds against what the child had been answered, and
// starts the next child on the same folder.
#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>
#include <map>
#include <random>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/cache_node/tiers/disk/disk_tier_fixture.h"
#include "tests/testing/child_process.h"

namespace cairn::testing {
namespace {

using node::DiskPlace;
using node::DiskTier;

constexpr int kKills = 30;
constexpr uint64_t kCallsMax = 400;
constexpr uint64_t kNumbersPerChild = 1'000'000;
constexpr size_t kChildPayloadBytes = 3000;

// What the children were answered.
class DiskTierModel {
 public:
  void Learn(const std::string& line) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    std::vector<uint64_t> numbers;
    for (size_t i = 1; i < words.size(); ++i) {
      numbers.emplace_back();
      ASSERT_TRUE(absl::SimpleAtoi(words[i], &numbers.back())) << line;
    }
    if (words[0] == "begin") files_[numbers[0]] = {numbers[1], numbers[2], false, {}};
    if (words[0] == "finished") files_[numbers[0]].there = true;
    if (words[0] == "dropping") files_[numbers[0]].there = false;
    if (words[0] == "dropped") gone_.insert(numbers[0]);
    if (words[0] == "marked") files_[numbers[0]].dead.insert(static_cast<uint32_t>(numbers[1]));
    if (words[0] == "fenced") fenced_ = std::max(fenced_, numbers[0]);
  }

  void Check(const std::vector<DiskTier::RecoveredFile>& found) {
    std::set<uint64_t> there;
    for (const DiskTier::RecoveredFile& file : found) {
      there.insert(file.file);
      ASSERT_EQ(files_.count(file.file), 1u) << "file " << file.file << " was never begun";
      EXPECT_EQ(gone_.count(file.file), 0u) << "file " << file.file << " was dropped";
      const File& known = files_.at(file.file);
      ASSERT_EQ(file.entries.size(), known.count);
      for (uint32_t slot = 0; slot < known.count; ++slot) {
        EXPECT_EQ(file.entries[slot].block.key, NumberedRecord::KeyOf(known.first + slot));
        EXPECT_GE(file.entries[slot].dead, known.dead.count(slot) > 0);
      }
    }
    for (const auto& [file, known] : files_) {
      EXPECT_GE(there.count(file) > 0, known.there) << "file " << file << " is lost";
    }
  }

  // What was found decides what was open to doubt.
  void Settle(const std::vector<DiskTier::RecoveredFile>& found) {
    std::set<uint64_t> there;
    for (const DiskTier::RecoveredFile& file : found) there.insert(file.file);
    for (auto& [file, known] : files_) {
      known.there = there.count(file) > 0;
      if (!known.there) gone_.insert(file);
    }
  }

  uint64_t FirstOf(uint64_t file) const { return files_.at(file).first; }
  uint64_t fenced() const { return fenced_; }
  size_t files() const { return files_.size(); }

 private:
  struct File {
    uint64_t first = 0;
    uint64_t count = 0;
    bool there = false;  // For sure.
    std::set<uint32_t> dead;
  };

  std::map<uint64_t, File> files_;
  std::set<uint64_t> gone_;
  uint64_t fenced_ = 0;
};

class DiskKillTest : public DiskTierFixture {
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

  void CheckWhatIsThere() {
    Reopen();
    ASSERT_EQ(tier_->GetStats().health, DiskTier::Health::kServing) << tier_->GetStats().reason;
    const std::vector<DiskTier::RecoveredFile> found = Recover();
    model_.Check(found);
    for (const DiskTier::RecoveredFile& file : found) {
      for (uint32_t slot = 0; slot < file.entries.size(); ++slot) {
        const uint64_t number = model_.FirstOf(file.file) + slot;
        EXPECT_TRUE(Read({file.file, slot}, number, kChildPayloadBytes).ok());
        ++records_;
      }
    }
    uint64_t sequence = 0;
    const absl::StatusOr<DiskTier::Ledger> ledger = tier_->ReadLedger();
    ASSERT_TRUE(ledger.ok()) << ledger.status();
    for (const DiskTier::Fence& fence : ledger->fences) sequence = fence.sequence;
    EXPECT_GE(sequence, model_.fenced());
    EXPECT_EQ(tier_->GetStats().damaged_files, 0u);
    EXPECT_TRUE(std::filesystem::is_empty(options_.directory + "/staging"));
    EXPECT_EQ(PayloadPaths().size(), found.size());
    model_.Settle(found);
    tier_.reset();
  }

  DiskTierModel model_;
  int records_ = 0;
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
