// BlockFamilies: who is whose parent, and who has become an orphan.
//
// A family is the children of one parent key, kept as long as there is a child, whether the parent
// is there or not: so children of a parent that left are known, and are adopted when it returns. A
// child in the parent's own partition holds its parent; one in another partition (a tenant's block
// after a public prompt) does not. A block is an orphan when its parent is neither in the index nor
// on disk, or is in the index and an orphan.
//
// A parent may have any number of children, and those of theirs: so a parent's coming or going only
// queues its family, and Step marks one block at a time. Not thread-safe: under the store's lock.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "cache_node/store/block_entry.h"

namespace cairn::node {

struct ParentId {
  PartitionIndex partition = 0;
  BlockKey key;
  friend bool operator==(const ParentId&, const ParentId&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const ParentId& id) {
    return H::combine(std::move(state), id.partition, id.key);
  }
};

struct Family {
  ParentId id;
  BlockEntry* parent = nullptr;  // Null while it is not in the index.
  BlockEntry* first = nullptr;   // Children that hold the parent before those that do not.
  BlockEntry* last = nullptr;
  uint32_t children = 0;
  uint32_t holding = 0;
  uint32_t staying = 0;          // Of those that hold, such as are to stay (store_stays.cc).
  bool below = false;            // The parent is not in the index but on disk.
  bool orphans = false;          // What each child is to be.
  BlockEntry* cursor = nullptr;  // While queued: next child to be marked so.
  bool queued = false;
};

class BlockFamilies {
 public:
  // Whether a block at `depth` can stand under this key: children that wait for it are one deeper.
  // So depth rises from parent to child always, and no block can be its own ancestor.
  bool Fits(const ParentId& id, uint32_t depth) const;
  // Whether a block at `depth` can be a child of this key, which is not in the index.
  bool FitsUnder(const ParentId& id, uint32_t depth) const;
  // The child entered the index, after `parent_id`; `parent` is that entry, or null when it is not
  // there; `below`: then it is on disk. Sets child->orphan.
  void Join(BlockEntry* child, const ParentId& parent_id, BlockEntry* parent, bool below);
  // The child left the index. Answers the parent when the child held it.
  BlockEntry* Leave(BlockEntry* child);
  // An entry entered the index, after Join where it has a parent: children that wait for it are
  // adopted.
  void ParentArrived(BlockEntry* parent);
  void ParentLeft(BlockEntry* parent, bool below);
  // A block that is not in the index came to disk, or left it.
  void BelowChanged(const ParentId& id, bool below);
  // Whether a block in the index holds the block of this key as its parent.
  bool Holding(const ParentId& id) const;

  bool has_work() const { return !work_.empty(); }
  // One step of marking. Answers the entry whose `orphan` changed, else null.
  BlockEntry* Step();

  size_t size() const { return families_.size(); }
  // Whether the family's counts and links agree with each other.
  absl::Status AuditFamily(const Family& family) const;

 private:
  void SetOrphans(Family* family, bool orphans);
  void DropIfEmpty(Family* family);

  absl::flat_hash_map<ParentId, std::unique_ptr<Family>> families_;
  std::deque<Family*> work_;
};

}  // namespace cairn::node
