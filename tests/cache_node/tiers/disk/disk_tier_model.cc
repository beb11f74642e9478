#include "tests/cache_node/tiers/disk/disk_tier_model.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "tests/cache_node/tiers/disk/numbered_record.h"

namespace cairn::testing {

using node::DiskTier;

void DiskTierModel::Learn(const std::string& line) {
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

void DiskTierModel::Check(const std::vector<DiskTier::RecoveredFile>& found) const {
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

void DiskTierModel::Settle(const std::vector<DiskTier::RecoveredFile>& found) {
  std::set<uint64_t> there;
  for (const DiskTier::RecoveredFile& file : found) there.insert(file.file);
  for (auto& [file, known] : files_) {
    known.there = there.count(file) > 0;
    if (!known.there) gone_.insert(file);
  }
}

}  // namespace cairn::testing
