#include "cache_node/service/feed_router.h"

#include <utility>

#include "common/base/check.h"

namespace cairn::node {

FeedRouter::~FeedRouter() {
  absl::MutexLock lock(&mutex_);
  CAIRN_CHECK(streams_.empty());
}

void FeedRouter::Add(WatcherId watcher, std::shared_ptr<Stream> stream) {
  absl::MutexLock lock(&mutex_);
  CAIRN_CHECK(streams_.emplace(watcher, std::move(stream)).second);
}

void FeedRouter::Remove(WatcherId watcher) {
  std::shared_ptr<Stream> removed;  // Destroyed without the lock.
  absl::MutexLock lock(&mutex_);
  const auto it = streams_.find(watcher);
  CAIRN_CHECK(it != streams_.end());
  removed = std::move(it->second);
  streams_.erase(it);
}

void FeedRouter::Wake(const std::vector<WatcherId>& watchers) {
  std::vector<std::shared_ptr<Stream>> woken;
  {
    absl::MutexLock lock(&mutex_);
    for (const WatcherId watcher : watchers) {
      const auto it = streams_.find(watcher);
      if (it != streams_.end()) woken.push_back(it->second);
    }
  }
  for (const auto& stream : woken) stream->OnFeed();
}

void FeedRouter::Heartbeat() {
  for (const auto& stream : All()) stream->OnHeartbeat();
}

void FeedRouter::EndAll(const absl::Status& status) {
  for (const auto& stream : All()) stream->OnEnd(status);
}

size_t FeedRouter::streams() const {
  absl::MutexLock lock(&mutex_);
  return streams_.size();
}

std::vector<std::shared_ptr<FeedRouter::Stream>> FeedRouter::All() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::shared_ptr<Stream>> all;
  all.reserve(streams_.size());
  for (const auto& [watcher, stream] : streams_) all.push_back(stream);
  return all;
}

}  // namespace cairn::node
