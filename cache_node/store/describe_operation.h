// DescribeOperation: what is known of blocks of one tenant beside their bytes, in steps. Uses and
// counts nothing. Of the tenant's own blocks only.
#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cache_node/store/block_record.h"
#include "cache_node/store/store_state.h"

namespace cairn::node {

class DescribeOperation {
 public:
  // All that it borrows outlives it. Blocks whose tokens would be more than `tokens_max` in all are
  // kNotLeased; 0: no tokens are given, and so none are too many.
  DescribeOperation(absl::string_view tenant, const Fingerprint& fingerprint,
                    absl::Span<const BlockKey> keys, uint64_t tokens_max);

  // A bounded part, under the shared lock; true when done.
  bool Step(const StoreState& state);
  BlockRecords Take() { return std::move(records_); }

 private:
  BlockRecord RecordOf(const StoreState& state, PartitionIndex partition, const BlockKey& key);
  void Fill(const BlockEntry& entry, BlockRecord* record);
  uint32_t ScopeOf(const ScopeList& scope);

  const absl::string_view tenant_;
  const Fingerprint& fingerprint_;
  const absl::Span<const BlockKey> keys_;
  const uint64_t tokens_max_;
  BlockRecords records_;
  absl::flat_hash_map<BlockKey, uint32_t> scope_indexes_;
  uint64_t tokens_ = 0;
};

}  // namespace cairn::node
