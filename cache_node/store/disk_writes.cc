#include "cache_node/store/disk_writes.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace cairn::node {

const WriteTask& DiskWrites::Add(DiskWrite write) {
  CAIRN_CHECK((write.entry != nullptr) != write.from.has_value());
  const uint64_t id = ++last_id_;
  write.task.id = id;
  CAIRN_CHECK(by_block_.emplace(write.block(), id).second);
  if (write.entry != nullptr) spilling_bytes_ += write.task.block.payload_bytes;
  return writes_.emplace(id, std::move(write)).first->second.task;
}

DiskWrite* DiskWrites::Find(uint64_t id) {
  auto it = writes_.find(id);
  return it == writes_.end() ? nullptr : &it->second;
}

const DiskWrite* DiskWrites::FindBlock(const ParentId& block) const {
  auto it = by_block_.find(block);
  return it == by_block_.end() ? nullptr : &writes_.at(it->second);
}

uint64_t DiskWrites::OldestSequence() const {
  uint64_t oldest = UINT64_MAX;
  for (const auto& [id, write] : writes_) {
    oldest = std::min(oldest, write.task.block.sequence);
  }
  return oldest;
}

void DiskWrites::Erase(uint64_t id) {
  auto it = writes_.find(id);
  CAIRN_CHECK(it != writes_.end());
  if (it->second.entry != nullptr) spilling_bytes_ -= it->second.task.block.payload_bytes;
  CAIRN_CHECK(by_block_.erase(it->second.block()) == 1);
  writes_.erase(it);
}

}  // namespace cairn::node
