// ReclaimOperation: what of a file that makes room is written again, in steps. FileRemoval: its
// blocks' end. RecoveryOperation: a file that was found at start.
//
// Each Step does a bounded part under the store's lock, and says whether all of it is done.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cache_node/store/store_state.h"

namespace cairn::node {

// Chooses the file, then of its blocks: first those that were used since they were written, then
// those on which others hang; orphans never. Within the bytes that may be written again.
class ReclaimOperation {
 public:
  bool Step(StoreState* state);
  std::optional<ReclaimTask> TakeTask();

 private:
  enum class Worth : uint8_t { kNothing, kChildren, kUse };
  struct Candidate {
    uint32_t slot = 0;
    Worth worth = Worth::kNothing;
  };
  Worth WorthOf(const StoreState& state, DiskHandle handle) const;
  void Choose(StoreState* state, const Candidate& candidate);

  std::optional<DiskFileIndex> file_;
  bool none_ = false;
  uint32_t next_slot_ = 0;
  bool looked_ = false;
  std::vector<Candidate> candidates_;  // Used ones first, once all were looked at.
  size_t next_candidate_ = 0;
  std::vector<MoveTask> moves_;
  uint64_t number_ = 0;
};

// Makes all that is left in a file unreachable, and forgets the file.
class FileRemoval {
 public:
  // `reclaimed`: by the one who took it for reclaim; others leave a busy file alone.
  FileRemoval(uint64_t file, bool reclaimed) : number_(file), reclaimed_(reclaimed) {}
  bool Step(StoreState* state);

 private:
  const uint64_t number_;
  const bool reclaimed_;
  uint32_t next_slot_ = 0;
};

class RecoveryOperation {
 public:
  // Borrows the file.
  explicit RecoveryOperation(const DiskTier::RecoveredFile* file) : found_(*file) {}
  bool Step(StoreState* state);

 private:
  // Whose the blocks of one of the file's scopes are; found anew under each lock.
  struct Home {
    uint64_t section = 0;
    bool known = false;
    std::optional<DiskScopeIndex> scope;
    uint64_t fence = 0;
    uint64_t block_bytes = 0;
    PartitionIndex partition = 0;
  };
  Home& HomeOf(StoreState* state, uint32_t scope);
  void Add(StoreState* state, uint32_t slot);

  const DiskTier::RecoveredFile& found_;
  std::optional<DiskFileIndex> file_;
  std::vector<Home> homes_;
  uint64_t section_ = 0;
  uint32_t next_ = 0;
};

}  // namespace cairn::node
