#include "cache_node/store/scope_lists.h"

#include "common/base/check.h"

namespace cairn::node {

void ScopeLists::Add(BlockEntry* entry, const BlockKey& scope_digest, absl::string_view adapter,
                     absl::string_view salt) {
  CAIRN_CHECK(entry->scope == nullptr);
  std::unique_ptr<ScopeList>& list = lists_[{entry->partition, scope_digest}];
  if (list == nullptr) {
    list = std::make_unique<ScopeList>();
    list->partition = entry->partition;
    list->scope_digest = scope_digest;
    list->adapter = std::string(adapter);
    list->salt = std::string(salt);
  }
  entry->scope = list.get();
  entry->scope_previous = list->last;
  (list->last != nullptr ? list->last->scope_next : list->first) = entry;
  list->last = entry;
  ++list->entries;
}

void ScopeLists::Remove(BlockEntry* entry) {
  ScopeList* list = entry->scope;
  CAIRN_CHECK(list != nullptr && list->entries > 0);
  (entry->scope_previous != nullptr ? entry->scope_previous->scope_next : list->first) =
      entry->scope_next;
  (entry->scope_next != nullptr ? entry->scope_next->scope_previous : list->last) =
      entry->scope_previous;
  entry->scope = nullptr;
  entry->scope_previous = nullptr;
  entry->scope_next = nullptr;
  if (--list->entries > 0) return;
  const std::pair<PartitionIndex, BlockKey> id(list->partition, list->scope_digest);
  CAIRN_CHECK(lists_.erase(id) == 1);
}

const ScopeList* ScopeLists::Find(PartitionIndex partition, const BlockKey& scope_digest) const {
  auto it = lists_.find({partition, scope_digest});
  return it == lists_.end() ? nullptr : it->second.get();
}

BlockEntry* ScopeLists::AnyOf(PartitionIndex partition) const {
  auto it = lists_.lower_bound({partition, BlockKey{}});
  if (it == lists_.end() || it->first.first != partition) return nullptr;
  return it->second->first;
}

}  // namespace cairn::node
