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
  namespaces_waiting_ = namespaces.size();
  for (FeedNamespace& record : namespaces) PushBarrier(std::move(record));
  for (uint32_t shard = 0; shard < shards_.size(); ++shard) to_send_.push_back(shard);
}

FeedQueue::Run* FeedQueue::OpenRun(ShardState* state) {
  if (state->open_run != nullptr && state->open_run->barriers != barriers_) {
    state->open_run->places = {};
    state->open_run = nullptr;
  }
  return state->open_run;
}

void FeedQueue::Push(uint32_t shard, const FeedRecord& record) {
  CAIRN_CHECK(shard < shards_.size());
  ShardState& state = shards_[shard];
  if (cut_ || state.phase == Phase::kUnsent) return;
  const std::pair<PartitionIndex, BlockKey> block(record.partition, record.key);
  if (Run* run = OpenRun(&state); run != nullptr) {
    if (auto it = run->places.find(block); it != run->places.end()) {
      run->records[it->second] = record;
      return;
    }
  }
  if (!MakeRoom()) {
    ++given_up_;
    Resync(shard);
  }
  if (state.phase == Phase::kUnsent) return;  // Given up: the snapshot will say it.
  Run* run = OpenRun(&state);
  if (run == nullptr) {
    run = &std::get<Run>(items_.emplace_back(Run{shard, barriers_, 0, {}, {}}));
    state.open_run = run;
  }
  CAIRN_CHECK(run->shard == shard && run->next == 0);
  run->places.emplace(block, static_cast<uint32_t>(run->records.size()));
  run->records.push_back(record);
  ++waiting_;
  ++state.waiting;
}

void FeedQueue::Push(const FeedNamespace& record) {
  if (cut_) return;
  if (!MakeRoom()) return Cut();
  ++waiting_;
  ++namespaces_waiting_;
  PushBarrier(record);
}

void FeedQueue::PushHeartbeat() {
  if (cut_ || heartbeat_waits_ || !MakeRoom()) return;
  Heartbeat heartbeat;
  for (uint32_t shard = 0; shard < shards_.size(); ++shard) {
    if (shards_[shard].phase != Phase::kSent) continue;
    heartbeat.message.shards.push_back({shard, 0, source_->SumsOf(shard)});
    heartbeat.epochs.push_back(shards_[shard].epoch);
  }
  heartbeat_waits_ = true;
  ++waiting_;
  PushBarrier(std::move(heartbeat));
}

void FeedQueue::Resync(uint32_t shard) {
  CAIRN_CHECK(shard < shards_.size());
  ShardState& state = shards_[shard];
  if (cut_ || state.phase == Phase::kUnsent) return;
  if (state.phase == Phase::kSending) snapshot_.reset();
  state.phase = Phase::kUnsent;
  ++state.epoch;
  if (state.waiting > 0) {
    std::erase_if(items_, [shard](const Item& item) {
      const Run* run = std::get_if<Run>(&item);
      return run != nullptr && run->shard == shard;
    });
  }
  CAIRN_CHECK(waiting_ >= state.waiting);
  waiting_ -= std::exchange(state.waiting, 0);
  state.open_run = nullptr;
  to_send_.push_back(shard);
  woken_ |= std::exchange(idle_, false);
}

FeedMessage FeedQueue::Next(size_t batch_records_max) {
  CAIRN_CHECK(batch_records_max > 0);
  if (cut_) return FeedCut{};
  if (SnapshotIsDue()) StartSnapshot();
  if (snapshot_.has_value()) return NextOfSnapshot(batch_records_max);
  if (items_.empty()) {
    idle_ = true;
    return FeedIdle{};
  }
  ++live_since_snapshot_;
  if (std::holds_alternative<Run>(items_.front())) return NextOfRun(batch_records_max);
  Item item = std::move(items_.front());
  items_.pop_front();
  if (free_namespaces_ > 0) {
    --free_namespaces_;
  } else {
    --waiting_;
  }
  if (auto* record = std::get_if<FeedNamespace>(&item)) {
    --namespaces_waiting_;
    return std::move(*record);
  }
  heartbeat_waits_ = false;
  return TakeHeartbeat(std::get<Heartbeat>(std::move(item)));
}

bool FeedQueue::MakeRoom() {
  woken_ |= std::exchange(idle_, false);
  if (waiting_ < records_max_) return true;
  const auto longest = std::max_element(
      shards_.begin(), shards_.end(),
      [](const ShardState& a, const ShardState& b) { return a.waiting < b.waiting; });
  if (longest->waiting == 0) return false;
  ++given_up_;
  Resync(static_cast<uint32_t>(longest - shards_.begin()));
  return true;
}

void FeedQueue::Cut() {
  cut_ = true;
  items_ = {};
  to_send_ = {};
  shards_ = std::vector<ShardState>(shards_.size());
  snapshot_.reset();
  waiting_ = 0;
}

void FeedQueue::PushBarrier(Item item) {
  items_.push_back(std::move(item));
  ++barriers_;
}

// No snapshot passes a namespace record, as no record does: of a namespace that was retired and
// registered again it would say what the retirement then takes back.
bool FeedQueue::SnapshotIsDue() const {
  if (snapshot_.has_value() || to_send_.empty()) return false;
  if (items_.empty()) return true;
  return live_since_snapshot_ >= kLivePerSnapshot && namespaces_waiting_ == 0;
}

void FeedQueue::StartSnapshot() {
  const uint32_t shard = to_send_.front();
  to_send_.pop_front();
  ShardState& state = shards_[shard];
  CAIRN_CHECK(state.phase == Phase::kUnsent && state.waiting == 0 && !snapshot_.has_value());
  state.phase = Phase::kSending;
  snapshot_ = Snapshot{shard, 0, source_->SnapshotShard(shard)};
  live_since_snapshot_ = 0;
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

// The next batch of the run at the front. A run that is spent is gone.
FeedBatch FeedQueue::NextOfRun(size_t batch_records_max) {
  Run& run = std::get<Run>(items_.front());
  ShardState& state = shards_[run.shard];
  // Closed once it is being sent: a shard that never rests must not hold up those behind it.
  if (state.open_run == &run) state.open_run = nullptr;
  run.places = {};
  FeedBatch batch;
  batch.shard = run.shard;
  batch.sequence = ++state.sequence;
  batch.records = TakeBatch(run.records, &run.next, batch_records_max);
  const size_t taken = batch.records.size();
  CAIRN_CHECK(taken > 0 && waiting_ >= taken && state.waiting >= taken);
  waiting_ -= taken;
  state.waiting -= taken;
  if (run.next == run.records.size()) items_.pop_front();
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
