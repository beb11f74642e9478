// ScopeLists: the entries of each scope of each partition, oldest first, so that a scope or a whole
// partition is removed in steps without a scan of the index. Not thread-safe: under the store's
// lock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/strings/string_view.h"
#include "cache_node/store/block_entry.h"

namespace cairn::node {

struct ScopeList {
  PartitionIndex partition = 0;
  BlockKey scope_digest;
  BlockEntry* first = nullptr;
  BlockEntry* last = nullptr;
  uint64_t entries = 0;
  std::string adapter;
  std::string salt;
};

class ScopeLists {
 public:
  // Adapter and salt are kept from the scope's first entry.
  void Add(BlockEntry* entry, const BlockKey& scope_digest, absl::string_view adapter,
           absl::string_view salt);
  void Remove(BlockEntry* entry);

  // Null when the scope has no entry.
  const ScopeList* Find(PartitionIndex partition, const BlockKey& scope_digest) const;
  // Some entry of the partition; null when it has none.
  BlockEntry* AnyOf(PartitionIndex partition) const;

 private:
  absl::btree_map<std::pair<PartitionIndex, BlockKey>, std::unique_ptr<ScopeList>> lists_;
};

}  // namespace cairn::node
