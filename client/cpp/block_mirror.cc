#include "client/cpp/block_mirror.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/identity/segment_digest.h"
#include "common/wire/limits.h"

namespace cairn {
namespace {

void Count(const BlockKey& key, uint8_t tiers, uint64_t sign, BlockMirror::ShardTotals* totals) {
  const uint64_t share = FeedKeyDigest(key) * sign;
  for (size_t bit = 0; bit < BlockMirror::kTierBits; ++bit) {
    if ((tiers >> bit & 1) == 0) continue;
    (*totals)[bit].blocks += sign;
    (*totals)[bit].key_sum += share;
  }
}

constexpr uint64_t kAdd = 1;
constexpr uint64_t kSubtract = ~uint64_t{0};  // -1 mod 2^64

absl::Status BadBatch(const v1::BlockBatch& batch, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("batch ", batch.sequence(), " of shard ", batch.shard(), ": ", why));
}

}  // namespace

BlockMirror::BlockMirror(const MirrorOptions& options) : options_(options) {
  CAIRN_CHECK(options.resync_backoff_initial > absl::ZeroDuration());
}

absl::Status BlockMirror::Apply(const v1::WatchBlocksResponse& message, absl::Time now) {
  if (message.has_hello()) return ApplyHello(message.hello());
  if (!node_) return absl::InvalidArgumentError("the feed did not begin with a hello");
  switch (message.message_case()) {
    case v1::WatchBlocksResponse::kBatch:
      return ApplyBatch(message.batch(), now);
    case v1::WatchBlocksResponse::kNamespaceRecord:
      return ApplyNamespace(message.namespace_record());
    case v1::WatchBlocksResponse::kHeartbeat:
      return ApplyHeartbeat(message.heartbeat(), now);
    default:
      return absl::OkStatus();  // Of a later version of the contract.
  }
}

absl::Status BlockMirror::ApplyHello(const v1::NodeInfo& hello) {
  if (node_) return absl::InvalidArgumentError("a second hello on one feed");
  if (hello.contract_version() != kContractVersion) {
    return absl::InvalidArgumentError(absl::StrCat("the feed is of contract version ",
                                                   hello.contract_version(), ", this is ",
                                                   kContractVersion));
  }
  if (hello.shards() == 0 || hello.shards() > kMirrorShardsMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the feed has ", hello.shards(), " shards; 1 to ", kMirrorShardsMax, " are allowed"));
  }
  if (!Incarnation::FromBytes(hello.incarnation())) {
    return absl::InvalidArgumentError("the feed's incarnation is not 16 bytes");
  }
  node_ = hello;
  shards_.resize(hello.shards());
  for (Shard& shard : shards_) shard.backoff = options_.resync_backoff_initial;
  return absl::OkStatus();
}

absl::Status BlockMirror::CheckBatch(const v1::BlockBatch& batch) const {
  if (batch.shard() >= shards_.size()) {
    return BadBatch(batch, absl::StrCat("there are ", shards_.size(), " shards"));
  }
  const size_t count = batch.keys().size() / kKeyBytes;
  if (batch.keys().size() % kKeyBytes != 0) return BadBatch(batch, "keys are not of 16 bytes each");
  if (batch.tier_masks().size() != count) return BadBatch(batch, "not one tier mask a key");
  if (!batch.reasons().empty() && batch.reasons().size() != count) {
    return BadBatch(batch, "not one reason a key");
  }
  if (count > 0 && batch.fingerprint().size() != kFingerprintBytes) {
    return BadBatch(batch, "the fingerprint is not 32 bytes");
  }
  if (batch.tenant().size() > kNameBytesMax) return BadBatch(batch, "the tenant is too long");
  for (size_t i = 0; i < count; ++i) {
    const auto first = static_cast<uint8_t>(batch.keys()[i * kKeyBytes]);
    if (first % shards_.size() != batch.shard()) return BadBatch(batch, "a key of another shard");
  }
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> BlockMirror::InternOwner(const v1::BlockBatch& batch) {
  const auto next = static_cast<uint32_t>(owners_.size());
  const auto [place, added] =
      owner_index_.try_emplace(absl::StrCat(batch.fingerprint(), batch.tenant()), next);
  if (!added) return place->second;
  if (owners_.size() >= kMirrorOwnersMax) {
    owner_index_.erase(place);
    return absl::ResourceExhaustedError(absl::StrCat("the feed names more than ", kMirrorOwnersMax,
                                                     " pairs of namespace and tenant"));
  }
  owners_.push_back({*Fingerprint::FromBytes(batch.fingerprint()), batch.tenant()});
  return next;
}

absl::Status BlockMirror::ApplyBatch(const v1::BlockBatch& batch, absl::Time now) {
  if (absl::Status status = CheckBatch(batch); !status.ok()) return status;
  Shard& shard = shards_[batch.shard()];
  if (batch.sequence() <= shard.sequence) return BadBatch(batch, "its sequence went back");
  if (batch.replaces()) {
    Clear(&shard);
    shard.started = true;
    shard.broken = false;
    shard.agreed = false;
  } else if (shard.broken) {
    shard.sequence = batch.sequence();
    return absl::OkStatus();
  } else if (!shard.started || batch.sequence() != shard.sequence + 1) {
    ++gaps_seen_;
    shard.sequence = batch.sequence();
    Break(&shard, now);
    return absl::OkStatus();
  }
  shard.sequence = batch.sequence();
  shard.snapshot_open = batch.more();
  uint32_t owner = 0;
  if (!batch.keys().empty()) {
    const absl::StatusOr<uint32_t> interned = InternOwner(batch);
    if (!interned.ok()) return interned.status();
    owner = *interned;
  }
  for (size_t i = 0; i * kKeyBytes < batch.keys().size(); ++i) {
    const absl::string_view keys = batch.keys();
    const BlockKey key = *BlockKey::FromBytes(keys.substr(i * kKeyBytes, kKeyBytes));
    const auto tiers = static_cast<uint8_t>(batch.tier_masks()[i]);
    if (absl::Status status = Record(key, tiers, owner, &shard); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status BlockMirror::Record(const BlockKey& key, uint8_t tiers, uint32_t owner, Shard* shard) {
  const auto found = shard->blocks.find(key);
  if (found != shard->blocks.end()) {
    Count(key, found->second.tiers, kSubtract, &shard->totals);
    Count(key, tiers, kAdd, &shard->totals);
    if (tiers != 0) {
      found->second = {tiers, owner};
    } else {
      shard->blocks.erase(found);
      --block_count_;
    }
    return absl::OkStatus();
  }
  if (tiers == 0) return absl::OkStatus();
  if (block_count_ >= options_.blocks_max) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the node holds more than the ", options_.blocks_max,
                     " blocks that this mirror may; raise MirrorOptions::blocks_max"));
  }
  Count(key, tiers, kAdd, &shard->totals);
  shard->blocks.emplace(key, Entry{tiers, owner});
  ++block_count_;
  return absl::OkStatus();
}

absl::Status BlockMirror::ApplyNamespace(const v1::NamespaceRecord& record) {
  const std::optional<Fingerprint> fingerprint = Fingerprint::FromBytes(record.fingerprint());
  if (!fingerprint) {
    return absl::InvalidArgumentError("a namespace record's fingerprint is not 32 bytes");
  }
  if (!record.retired()) {
    retired_.erase(*fingerprint);
  } else if (retired_.size() < kMirrorOwnersMax) {
    retired_[*fingerprint] = true;
  } else {
    return absl::ResourceExhaustedError(
        absl::StrCat("the feed retired more than ", kMirrorOwnersMax, " namespaces"));
  }
  return absl::OkStatus();
}

absl::Status BlockMirror::ApplyHeartbeat(const v1::Heartbeat& heartbeat, absl::Time now) {
  if (heartbeat.incarnation() != node_->incarnation()) {
    return absl::InvalidArgumentError("a heartbeat of another incarnation than the hello's");
  }
  load_ = heartbeat.load();
  node_->set_drain_state(heartbeat.drain_state());
  if (heartbeat.partial()) {  // There is nothing to compare with.
    for (Shard& shard : shards_) {
      shard.agreed = shard.started && !shard.broken && !shard.snapshot_open;
    }
    return absl::OkStatus();
  }
  std::vector<bool> named(shards_.size());
  for (const v1::ShardDigest& digest : heartbeat.shards()) {
    if (absl::Status status = CompareDigest(digest, now); !status.ok()) return status;
    named[digest.shard()] = true;
  }
  // One that is not named will be sent anew.
  for (size_t i = 0; i < shards_.size(); ++i) shards_[i].agreed = shards_[i].agreed && named[i];
  return absl::OkStatus();
}

absl::Status BlockMirror::CompareDigest(const v1::ShardDigest& digest, absl::Time now) {
  if (digest.shard() >= shards_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a heartbeat names shard ", digest.shard(), " of ", shards_.size()));
  }
  ShardTotals theirs{};
  for (const v1::TierDigest& tier : digest.tiers()) {
    if (tier.tier() < 1 || static_cast<size_t>(tier.tier()) > kTierBits) {
      return absl::InvalidArgumentError(absl::StrCat("a heartbeat names tier ", tier.tier()));
    }
    theirs[static_cast<size_t>(tier.tier()) - 1] = {tier.blocks(), tier.key_sum()};
  }
  Shard& shard = shards_[digest.shard()];
  // A digest of an earlier state says nothing; one of a later state says that a batch was lost.
  if (shard.broken || digest.sequence() < shard.sequence) return absl::OkStatus();
  if (digest.sequence() > shard.sequence) {
    ++gaps_seen_;
    Break(&shard, now);
    return absl::OkStatus();
  }
  if (shard.snapshot_open) return absl::OkStatus();
  if (theirs == shard.totals) {
    shard.agreed = true;
    shard.backoff = options_.resync_backoff_initial;
    shard.ask_at = absl::InfinitePast();
  } else {
    ++digest_mismatches_seen_;
    Break(&shard, now);
  }
  return absl::OkStatus();
}

void BlockMirror::Clear(Shard* shard) {
  block_count_ -= shard->blocks.size();
  shard->blocks.clear();
  shard->totals = {};
}

// The first time asks at once; a shard that breaks again before it agreed waits for its backoff.
void BlockMirror::Break(Shard* shard, absl::Time now) {
  Clear(shard);
  shard->broken = true;
  shard->agreed = false;
  shard->snapshot_open = false;
  shard->ask_at = std::max(shard->ask_at, now);
}

std::vector<uint32_t> BlockMirror::TakeResyncs(absl::Time now) {
  std::vector<uint32_t> asked;
  for (uint32_t i = 0; i < shards_.size(); ++i) {
    Shard& shard = shards_[i];
    if (!shard.broken || now < shard.ask_at) continue;
    asked.push_back(i);
    shard.ask_at = now + shard.backoff;
    shard.backoff = std::min(shard.backoff * 2, options_.resync_backoff_max);
  }
  return asked;
}

const BlockMirror::Entry* BlockMirror::Find(const BlockKey& key) const {
  if (shards_.empty()) return nullptr;
  const Shard& shard = shards_[key.bytes[0] % shards_.size()];
  if (shard.broken || shard.snapshot_open) return nullptr;
  const auto found = shard.blocks.find(key);
  if (found == shard.blocks.end()) return nullptr;
  if (retired_.contains(owners_[found->second.owner].fingerprint)) return nullptr;
  return &found->second;
}

uint8_t BlockMirror::TiersOf(const BlockKey& key) const {
  const Entry* entry = Find(key);
  return entry == nullptr ? 0 : entry->tiers;
}

std::optional<BlockMirror::Owner> BlockMirror::OwnerOf(const BlockKey& key) const {
  const Entry* entry = Find(key);
  if (entry == nullptr) return std::nullopt;
  return owners_[entry->owner];
}

bool BlockMirror::AllShardsIn() const {
  return !shards_.empty() && std::all_of(shards_.begin(), shards_.end(), [](const Shard& shard) {
    return shard.started && !shard.broken && !shard.snapshot_open;
  });
}

bool BlockMirror::Exact() const {
  return AllShardsIn() && std::all_of(shards_.begin(), shards_.end(),
                                      [](const Shard& shard) { return shard.agreed; });
}

const BlockMirror::ShardTotals& BlockMirror::TotalsOf(uint32_t shard) const {
  CAIRN_CHECK(shard < shards_.size());
  return shards_[shard].totals;
}

uint64_t BlockMirror::SequenceOf(uint32_t shard) const {
  CAIRN_CHECK(shard < shards_.size());
  return shards_[shard].sequence;
}

}  // namespace cairn
