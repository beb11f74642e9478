#include "cache_node/store/entry_queue.h"

#include "common/base/check.h"

namespace cairn::node {

void EntryQueue::Count(BlockEntry* entry) {
  CAIRN_CHECK(entry->queue == nullptr);
  entry->queue = this;
  ++size_;
  bytes_ += entry->block_bytes();
}

void EntryQueue::PushBack(BlockEntry* entry) {
  Count(entry);
  entry->queue_previous = last_;
  (last_ != nullptr ? last_->queue_next : first_) = entry;
  last_ = entry;
}

void EntryQueue::PushFront(BlockEntry* entry) {
  Count(entry);
  entry->queue_next = first_;
  (first_ != nullptr ? first_->queue_previous : last_) = entry;
  first_ = entry;
}

void EntryQueue::Remove(BlockEntry* entry) {
  CAIRN_CHECK(entry->queue == this && size_ > 0);
  (entry->queue_previous != nullptr ? entry->queue_previous->queue_next : first_) =
      entry->queue_next;
  (entry->queue_next != nullptr ? entry->queue_next->queue_previous : last_) =
      entry->queue_previous;
  entry->queue = nullptr;
  entry->queue_previous = nullptr;
  entry->queue_next = nullptr;
  --size_;
  bytes_ -= entry->block_bytes();
}

}  // namespace cairn::node
