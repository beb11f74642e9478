#include "router/feed/feed_tracker.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/identity/segment_digest.h"
#include "common/wire/limits.h"

namespace cairn::router {
namespace {

constexpr uint64_t kAdd = 1;
constexpr uint64_t kSubtract = ~uint64_t{0};  // -1 mod 2^64

// Records ahead of the one that is taken whose keys the sink is told.
constexpr size_t kRecordsAhead = 8;

BlockKey KeyAt(const v1::BlockBatch& batch, size_t index) {
  return *BlockKey::FromBytes(absl::string_view(batch.keys()).substr(index * kKeyBytes, kKeyBytes));
}

absl::Status BadBatch(const v1::BlockBatch& batch, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("batch ", batch.sequence(), " of shard ", batch.shard(), ": ", why));
}

}  // namespace

FeedTracker::FeedTracker(const ResyncOptions& options, uint32_t shards, BlockSink* sink)
    : options_(options), sink_(sink), shards_(shards) {
  CAIRN_CHECK(shards > 0 && shards <= kFeedShardsMax && sink != nullptr);
  CAIRN_CHECK(options.backoff_initial > absl::ZeroDuration());
  for (Shard& shard : shards_) shard.backoff = options.backoff_initial;
}

absl::Status FeedTracker::CheckBatch(const v1::BlockBatch& batch) const {
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

// A batch that is repeated or late says nothing new: either it was taken, or it was missed, and
// then the gap is known and the shard comes again.
bool FeedTracker::BeginBatch(const v1::BlockBatch& batch, Shard* shard, absl::Time now) {
  if (batch.sequence() <= shard->sequence) return false;
  const bool missed = batch.sequence() != shard->sequence + 1;
  shard->sequence = batch.sequence();
  if (batch.replaces()) {
    sink_->ClearShard(batch.shard());
    shard->totals = {};
    Enter(batch.more() ? Phase::kOpen : Phase::kIn, shard);
  } else if (shard->phase != Phase::kBroken && (missed || shard->phase == Phase::kUnsent)) {
    ++gaps_seen_;
    Break(shard, now);
  } else if (shard->phase == Phase::kOpen && !batch.more()) {
    Enter(Phase::kIn, shard);
  }
  return true;
}

absl::Status FeedTracker::ApplyBatch(const v1::BlockBatch& batch, absl::Time now) {
  size_t taken = 0;
  const absl::StatusOr<bool> done =
      ApplyBatchPiece(batch, std::numeric_limits<size_t>::max(), &taken, now);
  CAIRN_CHECK(!done.ok() || *done);
  return done.status();
}

absl::StatusOr<bool> FeedTracker::ApplyBatchPiece(const v1::BlockBatch& batch, size_t records_max,
                                                  size_t* taken, absl::Time now) {
  CAIRN_CHECK(records_max > 0);
  if (*taken == 0) {
    if (absl::Status status = CheckBatch(batch); !status.ok()) return status;
    if (!BeginBatch(batch, &shards_[batch.shard()], now)) return true;
  }
  const size_t count = batch.tier_masks().size();
  const size_t end = *taken + std::min(records_max, count - *taken);
  if (end > *taken) {
    absl::Status status = TakeRecords(batch, *taken, end, &shards_[batch.shard()], now);
    if (!status.ok()) return status;
  }
  *taken = end;
  return end == count;
}

absl::Status FeedTracker::TakeRecords(const v1::BlockBatch& batch, size_t first, size_t end,
                                      Shard* shard, absl::Time now) {
  const absl::StatusOr<uint32_t> owner =
      sink_->OwnerOf(*Fingerprint::FromBytes(batch.fingerprint()), batch.tenant());
  if (!owner.ok()) return owner.status();
  for (size_t i = first; i < std::min(end, first + kRecordsAhead); ++i) {
    sink_->Expect(KeyAt(batch, i));
  }
  uint64_t dropped = 0;
  for (size_t i = first; i < end; ++i) {
    if (i + kRecordsAhead < end) sink_->Expect(KeyAt(batch, i + kRecordsAhead));
    const BlockKey key = KeyAt(batch, i);
    const auto tiers = static_cast<uint8_t>(batch.tier_masks()[i]);
    const std::optional<uint8_t> before = sink_->Set(*owner, key, tiers);
    if (!before.has_value()) {
      ++dropped;
      continue;
    }
    Count(key, *before, kSubtract, &shard->totals);
    Count(key, tiers, kAdd, &shard->totals);
  }
  records_dropped_ += dropped;
  if (dropped > 0) Break(shard, now);
  return absl::OkStatus();
}

void FeedTracker::Count(const BlockKey& key, uint8_t tiers, uint64_t sign, ShardTotals* totals) {
  if (tiers == 0) return;
  const uint64_t share = FeedKeyDigest(key) * sign;
  for (size_t bit = 0; bit < kTierBits; ++bit) {
    if ((tiers >> bit & 1) == 0) continue;
    (*totals)[bit].blocks += sign;
    (*totals)[bit].key_sum += share;
  }
}

absl::Status FeedTracker::ApplyDigest(const v1::ShardDigest& digest, absl::Time now) {
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
  if (shard.phase == Phase::kBroken || digest.sequence() < shard.sequence) return absl::OkStatus();
  if (digest.sequence() > shard.sequence) {
    ++gaps_seen_;
    Break(&shard, now);
    return absl::OkStatus();
  }
  if (shard.phase != Phase::kIn && shard.phase != Phase::kAgreed) return absl::OkStatus();
  if (theirs == shard.totals) {
    Enter(Phase::kAgreed, &shard);
    shard.backoff = options_.backoff_initial;
    shard.ask_at = absl::InfinitePast();
  } else {
    ++digest_mismatches_seen_;
    Break(&shard, now);
  }
  return absl::OkStatus();
}

absl::Status FeedTracker::ApplyDigests(
    const google::protobuf::RepeatedPtrField<v1::ShardDigest>& digests, absl::Time now) {
  std::vector<bool> named(shards_.size());
  for (const v1::ShardDigest& digest : digests) {
    if (absl::Status status = ApplyDigest(digest, now); !status.ok()) return status;
    named[digest.shard()] = true;
  }
  for (size_t i = 0; i < shards_.size(); ++i) {
    if (!named[i] && shards_[i].phase == Phase::kAgreed) Enter(Phase::kIn, &shards_[i]);
  }
  return absl::OkStatus();
}

void FeedTracker::Enter(Phase phase, Shard* shard) {
  const auto is_in = [](Phase p) { return p == Phase::kIn || p == Phase::kAgreed; };
  shards_in_ += size_t{is_in(phase)} - size_t{is_in(shard->phase)};
  shards_agreed_ += size_t{phase == Phase::kAgreed} - size_t{shard->phase == Phase::kAgreed};
  shard->phase = phase;
}

// The first time asks at once; a shard that breaks again before it agreed waits for its backoff.
void FeedTracker::Break(Shard* shard, absl::Time now) {
  Enter(Phase::kBroken, shard);
  shard->ask_at = std::max(shard->ask_at, now);
}

std::vector<uint32_t> FeedTracker::TakeResyncs(absl::Time now) {
  std::vector<uint32_t> asked;
  for (uint32_t i = 0; i < shards_.size(); ++i) {
    Shard& shard = shards_[i];
    if (shard.phase != Phase::kBroken || now < shard.ask_at) continue;
    asked.push_back(i);
    shard.ask_at = now + shard.backoff;
    shard.backoff = std::min(shard.backoff * 2, options_.backoff_max);
  }
  return asked;
}

}  // namespace cairn::router
