#include "cache_node/service/feed_messages.h"

#include <string>
#include <utility>
#include <variant>

#include "cache_node/service/store_messages.h"
#include "common/base/check.h"

namespace cairn::node {

void FeedMessages::Hello(v1::WatchBlocksResponse* response) const {
  facts_->FillInfo(response->mutable_hello());
}

FeedMessages::Next FeedMessages::Fill(const FeedMessage& message,
                                      v1::WatchBlocksResponse* response) const {
  if (std::holds_alternative<FeedIdle>(message)) return Next::kIdle;
  if (std::holds_alternative<FeedCut>(message)) return Next::kCut;
  if (const auto* batch = std::get_if<FeedBatch>(&message)) {
    Fill(*batch, response->mutable_batch());
  } else if (const auto* record = std::get_if<FeedNamespace>(&message)) {
    Fill(*record, response->mutable_namespace_record());
  } else {
    Fill(std::get<FeedHeartbeat>(message), response->mutable_heartbeat());
  }
  return Next::kMessage;
}

void FeedMessages::Fill(const FeedBatch& batch, v1::BlockBatch* message) const {
  message->set_shard(batch.shard);
  message->set_sequence(batch.sequence);
  message->set_replaces(batch.replaces);
  message->set_more(batch.more);
  if (batch.records.empty()) return;
  const PartitionIndex partition = batch.records.front().partition;
  BlockStore::PartitionName name = store_->NameOf(partition);
  message->set_fingerprint(std::string(name.fingerprint.view()));
  message->set_tenant(std::move(name.tenant));
  bool removals = false;
  for (const FeedRecord& record : batch.records) {
    CAIRN_CHECK(record.partition == partition);
    message->mutable_keys()->append(record.key.view().data(), record.key.view().size());
    message->mutable_tier_masks()->push_back(static_cast<char>(record.tier_mask));
    removals |= record.tier_mask == 0;
  }
  if (!removals) return;
  for (const FeedRecord& record : batch.records) {
    message->mutable_reasons()->push_back(static_cast<char>(record.reason));
  }
}

void FeedMessages::Fill(const FeedNamespace& record, v1::NamespaceRecord* message) const {
  const KeyRules rules = store_->NamespaceOf(record.namespace_index);
  message->set_fingerprint(std::string(rules.fingerprint.view()));
  message->set_tenant(record.tenant);
  message->set_name(record.name);
  message->set_retired(record.retired);
  message->set_block_tokens(rules.block_tokens);
  message->set_key_scheme(static_cast<uint32_t>(rules.key_scheme));
}

void FeedMessages::Fill(const FeedHeartbeat& heartbeat, v1::Heartbeat* message) const {
  facts_->FillHeartbeat(message);
  for (const FeedHeartbeat::Shard& shard : heartbeat.shards) {
    v1::ShardDigest* digest = message->add_shards();
    digest->set_shard(shard.shard);
    digest->set_sequence(shard.sequence);
    ToMessage(shard.sums, digest);
  }
}

}  // namespace cairn::node
