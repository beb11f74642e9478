// EntryQueue: entries that wait for a mover, first come first served, linked through the entries.
//
// An entry is in at most one queue. Takes no memory of its own. Not thread-safe: under the store's
// lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cache_node/store/block_entry.h"

namespace cairn::node {

class EntryQueue {
 public:
  // The entry must be in no queue.
  void PushBack(BlockEntry* entry);
  void PushFront(BlockEntry* entry);
  void Remove(BlockEntry* entry);
  BlockEntry* front() const { return first_; }
  size_t size() const { return size_; }
  uint64_t bytes() const { return bytes_; }  // Payload of all.

 private:
  void Count(BlockEntry* entry);

  BlockEntry* first_ = nullptr;
  BlockEntry* last_ = nullptr;
  size_t size_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace cairn::node
