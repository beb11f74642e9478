#include "cache_node/store/describe_operation.h"

#include <algorithm>

#include "cache_node/store/lookup_operation.h"

namespace cairn::node {

DescribeOperation::DescribeOperation(absl::string_view tenant, const Fingerprint& fingerprint,
                                     absl::Span<const BlockKey> keys, uint64_t tokens_max)
    : tenant_(tenant), fingerprint_(fingerprint), keys_(keys), tokens_max_(tokens_max) {
  records_.blocks.reserve(keys.size());
}

bool DescribeOperation::Step(const StoreState& state) {
  const NamespaceRecord* name_space = state.namespaces.FindLive(fingerprint_);
  const TenantIndex owner = state.ledger.Find(tenant_);
  const PartitionIndex partition =
      name_space == nullptr || owner == 0 ? 0 : state.namespaces.FindPartition(*name_space, owner);
  const BlockState unknown =
      name_space == nullptr ? BlockState::kNamespaceUnknown : BlockState::kNeverSeen;
  const size_t end = std::min(keys_.size(), records_.blocks.size() + BlockStore::kStepsPerLock);
  while (records_.blocks.size() < end) {
    const BlockKey& key = keys_[records_.blocks.size()];
    records_.blocks.push_back(partition == 0 ? BlockRecord{.state = unknown}
                                             : RecordOf(state, partition, key));
  }
  return records_.blocks.size() == keys_.size();
}

BlockRecord DescribeOperation::RecordOf(const StoreState& state, PartitionIndex partition,
                                        const BlockKey& key) {
  BlockRecord record;
  const BlockEntry* entry = state.index.Find(partition, key);
  if (entry != nullptr && entry->life == BlockEntry::Life::kPresent) {
    Fill(*entry, &record);
    return record;
  }
  if (entry != nullptr) {
    record.state = BlockState::kPending;
    return record;
  }
  // A load that failed just now is another one's to know.
  if (const StoreState::Copy copy = state.ReadableCopyOf(partition, key, absl::InfiniteFuture())) {
    record.state = copy.on_device ? BlockState::kDevice : BlockState::kDisk;
    return record;
  }
  record.state = StateOfRemoved(state.removed.ReasonOf(partition, key));
  return record;
}

void DescribeOperation::Fill(const BlockEntry& entry, BlockRecord* record) {
  const size_t tokens = entry.HasTokens() && tokens_max_ > 0 ? entry.map->layout().block_tokens : 0;
  if (tokens_ + tokens > tokens_max_) {
    record->state = BlockState::kNotLeased;
    return;
  }
  tokens_ += tokens;
  record->state = BlockState::kHost;
  if (entry.family != nullptr) {
    record->parent = entry.family->id.key;
    record->parent_public = entry.family->id.partition != entry.partition;
  }
  record->scope = ScopeOf(*entry.scope);
  record->tokens.assign(entry.tokens.get(), entry.tokens.get() + tokens);
  record->provenance = entry.provenance;
  record->retention = entry.retention;
}

uint32_t DescribeOperation::ScopeOf(const ScopeList& scope) {
  const auto [found, fresh] =
      scope_indexes_.try_emplace(scope.scope_digest, static_cast<uint32_t>(records_.scopes.size()));
  if (fresh) {
    records_.scopes.push_back(
        {.digest = scope.scope_digest, .adapter = scope.adapter, .salt = scope.salt});
  }
  return found->second;
}

}  // namespace cairn::node
