// ModelHolder: a node's index and the feed that it would send, as messages. Fake: correct, in
// memory, without a network. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/types/span.h"
#include "cairn/v1/feed.pb.h"
#include "common/base/bytes16.h"
#include "common/identity/fingerprint.h"
#include "common/identity/segment_digest.h"
#include "tests/router/numbered_ids.h"

namespace cairn::router {

inline constexpr uint8_t kInHost = 2;  // Tier mask.

class ModelHolder {
 public:
  struct Identity {
    std::string node_id = "node-a";
    std::string address = "10.0.0.1:7000";
    std::string worker_address = "10.0.0.1:8000";
    char incarnation = 'i';
    uint32_t shards = 4;
    std::vector<std::pair<std::string, std::string>> labels = {};
    uint64_t worker_kv_tokens = 0;
  };
  using Message = v1::WatchBlocksResponse;

  explicit ModelHolder(Identity identity)
      : identity_(std::move(identity)), sequences_(identity_.shards), totals_(identity_.shards) {}

  const Identity& identity() const { return identity_; }

  Message Hello() const {
    Message message;
    v1::NodeInfo* hello = message.mutable_hello();
    hello->set_contract_version(1);
    hello->set_node_id(identity_.node_id);
    hello->set_incarnation(std::string(kKeyBytes, identity_.incarnation));
    hello->add_addresses(identity_.address);
    hello->set_worker_address(identity_.worker_address);
    hello->set_drain_state(v1::DRAIN_STATE_SERVING);
    hello->set_shards(identity_.shards);
    for (const auto& [key, value] : identity_.labels) {
      v1::Label* label = hello->add_labels();
      label->set_key(key);
      label->set_value(value);
    }
    hello->set_worker_kv_tokens(identity_.worker_kv_tokens);
    return message;
  }

  static Message Namespace(const Fingerprint& fingerprint, uint32_t block_tokens,
                           bool retired = false) {
    Message message;
    v1::NamespaceRecord* record = message.mutable_namespace_record();
    record->set_fingerprint(std::string(fingerprint.view()));
    record->set_name("model");
    record->set_tenant("public");
    record->set_block_tokens(block_tokens);
    record->set_key_scheme(1);
    record->set_retired(retired);
    return message;
  }

  // Puts the blocks where the mask says (0: gone); the records, one batch a shard.
  std::vector<Message> Set(absl::Span<const BlockKey> keys, uint8_t tiers,
                           const Fingerprint& fingerprint, const std::string& tenant) {
    absl::btree_map<uint32_t, Message> batches;
    for (const BlockKey& key : keys) {
      const uint32_t shard = ShardOf(key);
      Place(key, {tiers, fingerprint, tenant});
      Message& batch = batches[shard];
      if (!batch.has_batch()) batch = NewBatch(shard);
      AddRecord(key, {tiers, fingerprint, tenant}, batch.mutable_batch());
    }
    std::vector<Message> messages;
    for (auto& [shard, batch] : batches) messages.push_back(std::move(batch));
    return messages;
  }

  // The shard from the start, one key a batch.
  std::vector<Message> Snapshot(uint32_t shard) {
    std::vector<Message> messages;
    for (const auto& [key, block] : blocks_) {
      if (ShardOf(key) != shard) continue;
      messages.push_back(NewBatch(shard));
      AddRecord(key, block, messages.back().mutable_batch());
    }
    if (messages.empty()) messages.push_back(NewBatch(shard));
    messages.front().mutable_batch()->set_replaces(true);
    for (size_t i = 0; i + 1 < messages.size(); ++i) messages[i].mutable_batch()->set_more(true);
    return messages;
  }

  std::vector<Message> Snapshots() {
    std::vector<Message> messages;
    for (uint32_t shard = 0; shard < identity_.shards; ++shard) {
      for (Message& message : Snapshot(shard)) messages.push_back(std::move(message));
    }
    return messages;
  }

  // Digests of all shards that a batch was made of.
  Message Heartbeat(v1::DrainState drain_state = v1::DRAIN_STATE_SERVING) const {
    Message message;
    v1::Heartbeat* heartbeat = message.mutable_heartbeat();
    heartbeat->set_incarnation(std::string(kKeyBytes, identity_.incarnation));
    heartbeat->set_drain_state(drain_state);
    for (uint32_t shard = 0; shard < identity_.shards; ++shard) {
      if (sequences_[shard] == 0) continue;
      v1::ShardDigest* digest = heartbeat->add_shards();
      digest->set_shard(shard);
      digest->set_sequence(sequences_[shard]);
      for (size_t tier = 0; tier < kTiers; ++tier) {
        v1::TierDigest* totals = digest->add_tiers();
        totals->set_tier(static_cast<v1::Tier>(tier + 1));
        totals->set_blocks(totals_[shard][tier].first);
        totals->set_key_sum(totals_[shard][tier].second);
      }
    }
    return message;
  }

  // A new stream: sequences begin anew.
  void NewStream() { sequences_.assign(identity_.shards, 0); }

  size_t block_count() const { return blocks_.size(); }
  uint8_t TiersOf(const BlockKey& key) const {
    const auto found = blocks_.find(key);
    return found == blocks_.end() ? 0 : found->second.tiers;
  }

 private:
  static constexpr size_t kTiers = 3;
  struct Block {
    uint8_t tiers = 0;
    Fingerprint fingerprint;
    std::string tenant;
  };
  using Totals = std::array<std::pair<uint64_t, uint64_t>, kTiers>;  // Blocks, sum of digests.

  uint32_t ShardOf(const BlockKey& key) const { return key.bytes[0] % identity_.shards; }

  void Place(const BlockKey& key, const Block& block) {
    Count(key, TiersOf(key), ~uint64_t{0});
    Count(key, block.tiers, 1);
    if (block.tiers == 0) {
      blocks_.erase(key);
    } else {
      blocks_[key] = block;
    }
  }

  void Count(const BlockKey& key, uint8_t tiers, uint64_t sign) {
    for (size_t tier = 0; tier < kTiers; ++tier) {
      if ((tiers >> tier & 1) == 0) continue;
      auto& [blocks, sum] = totals_[ShardOf(key)][tier];
      blocks += sign;
      sum += sign * FeedKeyDigest(key);
    }
  }

  Message NewBatch(uint32_t shard) {
    Message message;
    message.mutable_batch()->set_shard(shard);
    message.mutable_batch()->set_sequence(++sequences_[shard]);
    return message;
  }

  static void AddRecord(const BlockKey& key, const Block& block, v1::BlockBatch* batch) {
    batch->set_fingerprint(std::string(block.fingerprint.view()));
    batch->set_tenant(block.tenant);
    batch->mutable_keys()->append(key.view().data(), key.view().size());
    batch->mutable_tier_masks()->push_back(static_cast<char>(block.tiers));
  }

  Identity identity_;
  absl::btree_map<BlockKey, Block> blocks_;
  std::vector<uint64_t> sequences_;
  std::vector<Totals> totals_;
};

}  // namespace cairn::router
