#include "tests/cluster/mirror_reader.h"

#include <optional>

#include "absl/time/clock.h"
#include "common/base/check.h"

namespace cairn::testing {
namespace {

// How long the reader waits for a message before it looks whether it is to stop.
constexpr absl::Duration kReadWait = absl::Milliseconds(10);
// Between two questions to the node.
constexpr absl::Duration kAskInterval = absl::Milliseconds(20);

}  // namespace

MirrorReader::MirrorReader(CacheNodeClient& client)
    : mirror_(MirrorOptions{}), thread_([this, &client] { Run(client); }) {}

MirrorReader::~MirrorReader() {
  stop_ = true;
  thread_.join();
}

void MirrorReader::Run(CacheNodeClient& client) {
  const auto watcher = client.WatchBlocks();
  while (!stop_) {
    auto message = watcher->Next(kReadWait);
    absl::MutexLock lock(&mutex_);
    if (!message.ok()) {
      status_ = message.status();
      return;
    }
    const absl::Time now = absl::Now();
    if (*message) {
      ++messages_;
      status_ = mirror_.Apply(**message, now);
      if (!status_.ok()) return;
    }
    if (!to_resync_.empty()) watcher->Resync(to_resync_);
    to_resync_.clear();
    watcher->Resync(mirror_.TakeResyncs(now));
  }
}

bool MirrorReader::Agrees(const v1::DescribeResponse& node) const {
  absl::MutexLock lock(&mutex_);
  if (!mirror_.AllShardsIn()) return false;
  CAIRN_CHECK(static_cast<uint32_t>(node.shards_size()) == mirror_.shard_count());
  for (const v1::ShardDigest& shard : node.shards()) {
    BlockMirror::ShardTotals theirs{};
    for (const v1::TierDigest& tier : shard.tiers()) {
      theirs[static_cast<size_t>(tier.tier()) - 1] = {tier.blocks(), tier.key_sum()};
    }
    if (theirs != mirror_.TotalsOf(shard.shard())) return false;
  }
  return mirror_.block_count() == node.blocks();
}

bool MirrorReader::AwaitAgreement(CacheNodeClient& describe, absl::Duration bound) {
  const absl::Time deadline = absl::Now() + bound;
  while (absl::Now() < deadline) {
    const absl::StatusOr<v1::DescribeResponse> node = describe.Describe(/*with_shards=*/true);
    if (node.ok() && Agrees(*node)) return true;
    absl::MutexLock lock(&mutex_);
    const auto broken = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !status_.ok(); };
    if (mutex_.AwaitWithTimeout(absl::Condition(&broken), kAskInterval)) return false;
  }
  return false;
}

bool MirrorReader::AwaitExact(absl::Duration bound) {
  absl::MutexLock lock(&mutex_);
  const auto exact = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !status_.ok() || mirror_.Exact();
  };
  return mutex_.AwaitWithTimeout(absl::Condition(&exact), bound) && status_.ok();
}

bool MirrorReader::AwaitDraining(absl::Duration bound) {
  absl::MutexLock lock(&mutex_);
  const auto draining = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return mirror_.node() && mirror_.node()->drain_state() == v1::DRAIN_STATE_DRAINING;
  };
  return mutex_.AwaitWithTimeout(absl::Condition(&draining), bound);
}

void MirrorReader::Resync(const std::vector<uint32_t>& shards) {
  absl::MutexLock lock(&mutex_);
  to_resync_.insert(to_resync_.end(), shards.begin(), shards.end());
}

absl::Status MirrorReader::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

uint64_t MirrorReader::gaps_seen() const {
  absl::MutexLock lock(&mutex_);
  return mirror_.gaps_seen();
}

uint64_t MirrorReader::digest_mismatches_seen() const {
  absl::MutexLock lock(&mutex_);
  return mirror_.digest_mismatches_seen();
}

size_t MirrorReader::block_count() const {
  absl::MutexLock lock(&mutex_);
  return mirror_.block_count();
}

uint64_t MirrorReader::messages() const {
  absl::MutexLock lock(&mutex_);
  return messages_;
}

}  // namespace cairn::testing
