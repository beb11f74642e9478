#include "cache_node/store/feed_queue.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace cairn::node {
namespace {

// The records from `next` on that fit one batch: one partition, at most `records_max`.
std::vector<FeedRecord> TakeBatch(const std::vector<FeedRecord>& records, size_t* next,
                                  size_t records_max) {
  const size_t begin = *next;
  const size_t limit = begin + std::min(records_max, records.size() - begin);
  size_t end = begin;
  while (end < limit && records[end].partition == records[begin].partition) ++end;
  *next = end;
  const auto first = records.begin();
  return {first + static_cast<ptrdiff_t>(begin), first + static_cast<ptrdiff_t>(end)};
}

}  // namespace

FeedQueue::FeedQueue(const FeedSource* source, size_t records_max,
                     std::vector<FeedNamespace> namespaces)
    : source_(source), records_max_(records_max), shards_(source->shard_count()) {
  CAIRN_CHECK(records_max > 0);
  free_namespaces_ = namespaces.size();
  for (FeedNamespace& record : namespaces) PushBarrier(std::move(record));
  for (uint32_t shard = 0; shard < shards_.size(); ++shard) to_send_.push_back(shard);
}

void FeedQueue::Push(uint32_t shard, const FeedRecord& record) {
  CAIRN_CHECK(shard < shards_.size());
  ShardState& state = shards_[shard];
  if (state.phase == Phase::kUnsent || !Admit()) return;
  if (state.open_run < open_from_ || state.open_run < front_position_) {
    state.open_run = end_position();
    items_.push_back(Run{shard, state.epoch, 0, {}});
  }
  Run& run = std::get<Run>(items_[state.open_run - front_position_]);
  CAIRN_CHECK(run.shard == shard && run.epoch == state.epoch);
  run.records.push_back(record);
}

void FeedQueue::Push(const FeedNamespace& record) {
  if (Admit()) PushBarrier(record);
}

void FeedQueue::PushHeartbeat() {
  if (heartbeat_waits_ || !Admit()) return;
  Heartbeat heartbeat;
  for (uint32_t shard = 0; shard < shards_.size(); ++shard) {
    if (shards_[shard].phase != Phase::kSent) continue;
    heartbeat.message.shards.push_back({shard, 0, source_->SumsOf(shard)});
    heartbeat.epochs.push_back(shards_[shard].epoch);
  }
  heartbeat_waits_ = true;
  PushBarrier(std::move(heartbeat));
}

void FeedQueue::Resync(uint32_t shard) {
  CAIRN_CHECK(shard < shards_.size());
  ShardState& state = shards_[shard];
  if (cut_ || state.phase == Phase::kUnsent) return;
  if (state.phase == Phase::kSending) snapshot_.reset();
  state.phase = Phase::kUnsent;
  ++state.epoch;
  state.open_run = 0;
  to_send_.push_back(shard);
  woken_ |= std::exchange(idle_, false);
}

FeedMessage FeedQueue::Next(size_t batch_records_max) {
  CAIRN_CHECK(batch_records_max > 0);
  if (cut_) return FeedCut{};
  if (snapshot_.has_value()) return NextOfSnapshot(batch_records_max);
  while (!items_.empty()) {
    if (std::holds_alternative<Run>(items_.front())) {
      std::optional<FeedBatch> batch = NextOfRun(batch_records_max);
      if (batch.has_value()) return *std::move(batch);
      continue;
    }
    Item item = std::move(items_.front());
    items_.pop_front();
    ++front_position_;
    if (free_namespaces_ > 0) {
      --free_namespaces_;
    } else {
      --waiting_;
    }
    if (auto* record = std::get_if<FeedNamespace>(&item)) return std::move(*record);
    heartbeat_waits_ = false;
    return TakeHeartbeat(std::get<Heartbeat>(std::move(item)));
  }
  if (StartSnapshot()) return NextOfSnapshot(batch_records_max);
  idle_ = true;
  return FeedIdle{};
}

bool FeedQueue::TakeWoken() { return std::exchange(woken_, false); }

bool FeedQueue::Admit() {
  if (cut_) return false;
  woken_ |= std::exchange(idle_, false);
  if (waiting_ < records_max_) {
    ++waiting_;
    return true;
  }
  cut_ = true;
  items_ = {};
  to_send_ = {};
  shards_ = std::vector<ShardState>(shards_.size());
  snapshot_.reset();
  waiting_ = 0;
  return false;
}

void FeedQueue::PushBarrier(Item item) {
  items_.push_back(std::move(item));
  open_from_ = end_position();
}

bool FeedQueue::StartSnapshot() {
  if (to_send_.empty()) return false;
  const uint32_t shard = to_send_.front();
  to_send_.pop_front();
  ShardState& state = shards_[shard];
  CAIRN_CHECK(state.phase == Phase::kUnsent && !snapshot_.has_value());
  state.phase = Phase::kSending;
  snapshot_ = Snapshot{shard, 0, source_->SnapshotShard(shard)};
  return true;
}

FeedBatch FeedQueue::NextOfSnapshot(size_t batch_records_max) {
  Snapshot& snapshot = *snapshot_;
  ShardState& state = shards_[snapshot.shard];
  CAIRN_CHECK(state.phase == Phase::kSending);
  FeedBatch batch;
  batch.shard = snapshot.shard;
  batch.sequence = ++state.sequence;
  batch.replaces = snapshot.next == 0;
  batch.records = TakeBatch(snapshot.records, &snapshot.next, batch_records_max);
  batch.more = snapshot.next < snapshot.records.size();
  if (!batch.more) {
    state.phase = Phase::kSent;
    snapshot_.reset();
  }
  return batch;
}

// The next batch of the run at the front; nothing when it was void. A run that is spent is gone.
std::optional<FeedBatch> FeedQueue::NextOfRun(size_t batch_records_max) {
  Run& run = std::get<Run>(items_.front());
  ShardState& state = shards_[run.shard];
  std::optional<FeedBatch> batch;
  const size_t before = run.next;
  if (run.epoch == state.epoch) {
    // Closed once it is being sent: a shard that never rests must not hold up those behind it.
    if (state.open_run == front_position_) state.open_run = 0;
    batch.emplace();
    batch->shard = run.shard;
    batch->sequence = ++state.sequence;
    batch->records = TakeBatch(run.records, &run.next, batch_records_max);
  } else {
    run.next = run.records.size();
  }
  CAIRN_CHECK(waiting_ >= run.next - before);
  waiting_ -= run.next - before;
  if (run.next == run.records.size()) {
    items_.pop_front();
    ++front_position_;
  }
  return batch;
}

FeedHeartbeat FeedQueue::TakeHeartbeat(Heartbeat heartbeat) const {
  FeedHeartbeat message;
  for (size_t i = 0; i < heartbeat.message.shards.size(); ++i) {
    FeedHeartbeat::Shard& entry = heartbeat.message.shards[i];
    const ShardState& state = shards_[entry.shard];
    if (state.epoch != heartbeat.epochs[i]) continue;
    entry.sequence = state.sequence;
    message.shards.push_back(entry);
  }
  return message;
}

}  // namespace cairn::node
