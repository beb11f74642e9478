#include "cache_node/store/feed_hub.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace cairn::node {

FeedHub::FeedHub(const FeedSource* source, size_t queue_records_max)
    : source_(source), queue_records_max_(queue_records_max) {
  CAIRN_CHECK(source != nullptr && queue_records_max > 0);
}

WatcherId FeedHub::Add(std::vector<FeedNamespace> known_namespaces) {
  if (watchers_.size() >= kWatchersMax) return 0;
  const WatcherId watcher = next_id_++;
  watchers_[watcher] =
      std::make_unique<FeedQueue>(source_, queue_records_max_, std::move(known_namespaces));
  return watcher;
}

void FeedHub::Remove(WatcherId watcher) {
  watchers_.erase(watcher);
  std::erase(woken_, watcher);
}

void FeedHub::Resync(WatcherId watcher, const std::vector<uint32_t>& shards) {
  FeedQueue* queue = Find(watcher);
  if (queue == nullptr) return;
  for (uint32_t shard : shards) {
    if (shard < source_->shard_count()) queue->Resync(shard);
  }
  Note(watcher, queue);
}

void FeedHub::ResyncAll() {
  for (auto& [watcher, queue] : watchers_) {
    for (uint32_t shard = 0; shard < source_->shard_count(); ++shard) queue->Resync(shard);
    Note(watcher, queue.get());
  }
}

void FeedHub::Record(uint32_t shard, const FeedRecord& record) {
  for (auto& [watcher, queue] : watchers_) {
    queue->Push(shard, record);
    Note(watcher, queue.get());
  }
}

void FeedHub::Record(const FeedNamespace& record) {
  for (auto& [watcher, queue] : watchers_) {
    queue->Push(record);
    Note(watcher, queue.get());
  }
}

void FeedHub::QueueHeartbeat(WatcherId watcher) {
  FeedQueue* queue = Find(watcher);
  if (queue == nullptr) return;
  queue->PushHeartbeat();
  Note(watcher, queue);
}

FeedMessage FeedHub::Next(WatcherId watcher) {
  FeedQueue* queue = Find(watcher);
  if (queue == nullptr) return FeedCut{};
  return queue->Next(kBatchRecordsMax);
}

std::vector<WatcherId> FeedHub::TakeWoken() { return std::exchange(woken_, {}); }

FeedQueue* FeedHub::Find(WatcherId watcher) {
  auto it = watchers_.find(watcher);
  return it == watchers_.end() ? nullptr : it->second.get();
}

void FeedHub::Note(WatcherId watcher, FeedQueue* queue) {
  given_up_ += queue->TakeGivenUp();
  if (!queue->TakeWoken()) return;
  if (std::find(woken_.begin(), woken_.end(), watcher) == woken_.end()) woken_.push_back(watcher);
}

}  // namespace cairn::node
