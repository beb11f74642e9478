#include "tests/cache_node/tiers/disk/disk_lives_fixture.h"

#include <filesystem>
#include <vector>

#include "tests/cache_node/tiers/disk/disk_tier_driver.h"

namespace cairn::testing {

using node::DiskTier;

void DiskLivesFixture::CheckWhatIsThere() {
  Reopen();
  ASSERT_EQ(tier_->GetStats().health, DiskTier::Health::kServing) << tier_->GetStats().reason;
  const std::vector<DiskTier::RecoveredFile> found = Recover();
  model_.Check(found);
  for (const DiskTier::RecoveredFile& file : found) {
    for (uint32_t slot = 0; slot < file.entries.size(); ++slot) {
      const uint64_t number = model_.FirstOf(file.file) + slot;
      EXPECT_TRUE(Read({file.file, slot}, number, DiskTierDriver::kPayloadBytes).ok());
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

}  // namespace cairn::testing
