#include "cache_node/store/disk_scopes.h"

#include "common/base/check.h"

namespace cairn::node {
namespace {

// A node of the order, and what the allocator adds to a record's strings.
constexpr uint64_t kContainerBytes = 160;

}  // namespace

uint64_t DiskScopes::BytesOf(const DiskScope& scope) {
  return sizeof(DiskScopeRecord) + sizeof(DiskScope) + kContainerBytes + scope.tenant.size() +
         scope.adapter.size() + scope.salt.size();
}

DiskScopeIndex DiskScopes::Of(PartitionIndex partition, uint64_t block_bytes,
                              const DiskScope& scope) {
  const std::pair<PartitionIndex, BlockKey> id(partition, scope.scope_digest);
  if (auto it = by_digest_.find(id); it != by_digest_.end()) return it->second;
  DiskScopeIndex index = 0;
  if (free_.empty()) {
    index = static_cast<DiskScopeIndex>(records_.size());
    records_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  DiskScopeRecord& record = records_[index];
  record.partition = partition;
  record.block_bytes = block_bytes;
  record.scope = std::make_shared<const DiskScope>(scope);
  bytes_ += BytesOf(scope);
  by_digest_.emplace(id, index);
  return index;
}

void DiskScopes::DropIfUnused(DiskScopeIndex index) {
  DiskScopeRecord& record = records_[index];
  if (record.blocks > 0) return;
  CAIRN_CHECK(record.first == 0 && record.last == 0);
  bytes_ -= BytesOf(*record.scope);
  CAIRN_CHECK(by_digest_.erase({record.partition, record.scope->scope_digest}) == 1);
  record = DiskScopeRecord{};
  free_.push_back(index);
}

void DiskScopes::CountBlock(DiskScopeIndex scope) {
  ++records_[scope].blocks;
  ++blocks_[records_[scope].partition];
}

void DiskScopes::UncountBlock(DiskScopeIndex scope) {
  auto it = blocks_.find(records_[scope].partition);
  CAIRN_CHECK(records_[scope].blocks > 0 && it != blocks_.end());
  --records_[scope].blocks;
  if (--it->second == 0) blocks_.erase(it);
}

uint64_t DiskScopes::BlocksOf(PartitionIndex partition) const {
  auto it = blocks_.find(partition);
  return it == blocks_.end() ? 0 : it->second;
}

const DiskScopeRecord* DiskScopes::Find(PartitionIndex partition,
                                        const BlockKey& scope_digest) const {
  auto it = by_digest_.find({partition, scope_digest});
  return it == by_digest_.end() ? nullptr : &records_[it->second];
}

const DiskScopeRecord* DiskScopes::AnyOf(PartitionIndex partition) const {
  auto it = by_digest_.lower_bound({partition, BlockKey{}});
  if (it == by_digest_.end() || it->first.first != partition) return nullptr;
  return &records_[it->second];
}

}  // namespace cairn::node
