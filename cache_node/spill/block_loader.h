// BlockLoader: moves blocks from the disk tier into the slots that wait for them.
//
// A mover: one thread calls Step; any number of loaders may run beside each other. Every segment's
// digest is checked against the block's key, and the record's scope, parent and lengths against
// what the index says: what differs is damage, never a block. Borrows tier and store, which must
// outlive it.
#pragma once

#include "absl/status/status.h"
#include "cache_node/store/block_store.h"
#include "cache_node/tiers/disk/disk_tier.h"

namespace cairn::node {

class BlockLoader {
 public:
  BlockLoader(DiskTier* tier, BlockStore* store) : tier_(tier), store_(store) {}

  // Loads one block. False: none waits; wait for Signals::loads.
  bool Step();

 private:
  absl::Status Load(const LoadTask& task, DiskRecordFields* fields);

  DiskTier* const tier_;
  BlockStore* const store_;
};

// DATA_LOSS saying what differs, when the record is not the task's block, whole and intact.
absl::Status VerifyRecord(const LoadTask& task, const DiskRecordFields& fields);

}  // namespace cairn::node
