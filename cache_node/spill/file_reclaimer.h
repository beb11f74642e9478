// FileReclaimer: makes room in the disk tier before it is full.
//
// A mover: one thread calls Step. When less than the headroom is free, the store says which file
// goes; what it finds worth keeping is written into another file first, then the rest becomes
// unreachable, then the file is dropped. A crash at any moment leaves a block in one file or both,
// never in none that was to be kept. Borrows tier and store, which must outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cache_node/store/block_store.h"
#include "cache_node/tiers/disk/disk_tier.h"

namespace cairn::node {

class FileReclaimer {
 public:
  struct Options {
    uint64_t headroom_bytes = uint64_t{512} << 20;  // At least one file being built, and one more.
    uint64_t writer = 0;                            // Incarnation, for the records.
  };

  FileReclaimer(const Options& options, DiskTier* tier, BlockStore* store)
      : options_(options), tier_(tier), store_(store) {}

  // Makes one file leave, when room is short. True: ask again at once. False: ask again when
  // something was written, or in a while.
  bool Step(absl::Time wall);

 private:
  // Writes the moves again; those that could not be are left behind.
  void Move(const ReclaimTask& task, absl::Time wall);
  // False: one is still there.
  bool DropLeft();
  absl::Status MoveBlock(const MoveTask& move, DiskFileBuilder* file, absl::Time wall,
                         std::vector<PlacedBlock>* placed);

  const Options options_;
  DiskTier* const tier_;
  BlockStore* const store_;
  std::vector<uint8_t> scratch_;
  std::vector<uint64_t> left_;  // Files that are forgotten and could not be dropped yet.
};

}  // namespace cairn::node
