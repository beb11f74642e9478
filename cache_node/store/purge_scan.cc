#include "cache_node/store/purge_scan.h"

#include <utility>

#include "common/base/check.h"

namespace cairn::node {

bool PurgeScan::IsWanted(const Provenance& provenance, bool follows) const {
  if (follows) return provenance.IsWithin(0, until_unix_ms_);
  return provenance.IsBy(writer_) && provenance.IsWithin(since_unix_ms_, until_unix_ms_);
}

void PurgeScan::Found(const ParentId& block) {
  found_.insert(block);
  batch_.push_back(block);
  pass_found_ = true;
}

void PurgeScan::LookInHost(StoreState* state, BlockEntry* entry) {
  const bool follows = entry->family != nullptr && found_.contains(entry->family->id);
  if (!IsWanted(entry->provenance, follows)) return;
  const ParentId block{entry->partition, entry->key};
  if (entry->life != BlockEntry::Life::kReserved) return Found(block);
  found_.insert(block);
  pass_found_ = true;
  ++reservations_;
  state->Remove(entry, RemovalReason::kDeleted);
}

void PurgeScan::LookElsewhere(StoreState* state, const StoreState::Copy& copy) {
  const DiskIndex& tier = state->IndexOf(copy);
  const DiskNode& node = tier.At(copy.handle);
  const bool follows = node.has_parent && found_.contains(state->ParentOf(copy));
  if (!IsWanted(tier.BlockOf(copy.handle, 0).provenance, follows)) return;
  Found({tier.PartitionOf(copy.handle), node.key});
}

bool PurgeScan::Step(StoreState* state) {
  CAIRN_CHECK(!done_);
  for (size_t i = 0; i < BlockStore::kStepsPerLock; ++i) {
    if (batch_.size() >= kBatchBlocks) return true;
    if (walk_.Next(*state)) {
      if (walk_.entry() != nullptr) LookInHost(state, walk_.entry());
      if (walk_.copy()) LookElsewhere(state, walk_.copy());
      continue;
    }
    // Blocks that follow may lie before those they follow: once more, until nothing is found.
    done_ = !std::exchange(pass_found_, false);
    walk_.Restart();
    return true;
  }
  return false;
}

std::vector<ParentId> PurgeScan::TakeBatch() { return std::exchange(batch_, {}); }

}  // namespace cairn::node
