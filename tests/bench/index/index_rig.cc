#include "tests/bench/index/index_rig.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/rpc/caller_identity.h"

namespace cairn::bench {
namespace {

constexpr size_t kNamesMax = 1024;  // Namespaces, and pairs of one and a tenant.

}  // namespace

Fingerprint BenchFingerprint() {
  Fingerprint fingerprint;
  fingerprint.bytes.fill(0x5a);
  return fingerprint;
}

v1::WatchBlocksResponse BenchHello(router::HolderIndex holder, uint32_t shards) {
  v1::WatchBlocksResponse message;
  v1::NodeInfo* hello = message.mutable_hello();
  hello->set_contract_version(1);
  hello->set_node_id(absl::StrCat("node-", holder));
  hello->set_incarnation(std::string(kKeyBytes, 'i'));
  hello->add_addresses(absl::StrCat("10.0.0.", holder, ":7070"));
  hello->set_worker_address(absl::StrCat("worker-", holder, ":8000"));
  hello->set_drain_state(v1::DRAIN_STATE_SERVING);
  hello->set_shards(shards);
  return message;
}

v1::WatchBlocksResponse BenchBatch() {
  v1::WatchBlocksResponse message;
  message.mutable_batch()->set_fingerprint(std::string(BenchFingerprint().view()));
  message.mutable_batch()->set_tenant(kBenchTenant);
  return message;
}

v1::WatchBlocksResponse BenchNamespace(uint32_t block_tokens) {
  v1::WatchBlocksResponse message;
  v1::NamespaceRecord* record = message.mutable_namespace_record();
  record->set_fingerprint(std::string(BenchFingerprint().view()));
  record->set_name("model");
  record->set_tenant(kBenchTenant);
  record->set_block_tokens(block_tokens);
  record->set_key_scheme(1);
  return message;
}

IndexRig::IndexRig(size_t holders, uint32_t shards, size_t slots_max)
    : shards_(shards),
      partitions_(kNamesMax),
      namespaces_(holders, kNamesMax),
      speculative_({}, holders, &partitions_),
      blocks_(holders, slots_max, &partitions_),
      sequences_(holders * shards),
      runs_(holders),
      usable_(holders, true) {
  const router::FeedTargets targets = {&blocks_, &speculative_, &namespaces_, &partitions_};
  for (size_t i = 0; i < holders; ++i) {
    const auto holder = static_cast<router::HolderIndex>(i);
    feeds_.push_back(std::make_unique<router::HolderFeed>(holder, router::FeedOptions{}, targets));
    Begin(holder);
  }
}

void IndexRig::Begin(router::HolderIndex holder) {
  v1::WatchBlocksResponse hello = BenchHello(holder, shards_);
  hello.mutable_hello()->set_incarnation(
      std::string(kKeyBytes, static_cast<char>('a' + runs_[holder]++ % 26)));
  CAIRN_CHECK_OK(feeds_[holder]->Apply(hello, absl::UnixEpoch()));
  for (uint32_t shard = 0; shard < shards_; ++shard) {
    sequences_[holder * shards_ + shard] = 0;
    Snapshot(holder, shard, {});
  }
}

void IndexRig::Restart(router::HolderIndex holder) {
  feeds_[holder]->Broke();
  Begin(holder);
}

uint32_t IndexRig::Lookup(absl::Span<const BlockKey> keys) const {
  const router::ReadablePartitions readable = {partitions_.Find(fingerprint_, kBenchTenant),
                                               partitions_.Find(fingerprint_, kPublicTenant)};
  uint32_t longest = 0;
  for (const router::PrefixMatch& match : blocks_.Match(keys, readable, usable_, &speculative_)) {
    longest = std::max(longest, match.blocks);
  }
  return longest;
}

void IndexRig::Feed(router::HolderIndex holder, uint32_t shard, absl::Span<const BlockKey> keys,
                    absl::Span<const uint8_t> held) {
  v1::BlockBatch* batch = message_.mutable_batch();
  batch->set_shard(shard);
  batch->set_sequence(++sequences_[holder * shards_ + shard]);
  batch->mutable_keys()->assign(reinterpret_cast<const char*>(keys.data()),
                                keys.size() * kKeyBytes);
  std::string* const masks = batch->mutable_tier_masks();
  masks->resize(held.size());
  for (size_t i = 0; i < held.size(); ++i) {
    (*masks)[i] = static_cast<char>(held[i] != 0 ? kBenchTier : 0);
  }
  Apply(holder);
}

void IndexRig::Snapshot(router::HolderIndex holder, uint32_t shard,
                        absl::Span<const BlockKey> keys) {
  message_.mutable_batch()->set_replaces(true);
  const std::vector<uint8_t> held(keys.size(), 1);
  Feed(holder, shard, keys, held);
  message_.mutable_batch()->set_replaces(false);
}

void IndexRig::Apply(router::HolderIndex holder) {
  CAIRN_CHECK_OK(feeds_[holder]->Apply(message_, absl::UnixEpoch()));
}

}  // namespace cairn::bench
