#include "cache_node/service/get_slots.h"

#include <utility>
#include <vector>

#include "common/base/check.h"

namespace cairn::node {

GetSlots::~GetSlots() {
  absl::MutexLock lock(&mutex_);
  CAIRN_CHECK(taken_ == 0 && streams_.empty());
}

bool GetSlots::Take() {
  absl::MutexLock lock(&mutex_);
  if (taken_ >= max_) return false;
  ++taken_;
  return true;
}

void GetSlots::Enter(std::shared_ptr<Stream> stream) {
  absl::MutexLock lock(&mutex_);
  CAIRN_CHECK(streams_.size() < taken_);
  const Stream* const key = stream.get();
  CAIRN_CHECK(streams_.emplace(key, std::move(stream)).second);
}

void GetSlots::Give(const Stream* stream) {
  std::shared_ptr<Stream> given;  // Destroyed without the lock.
  absl::MutexLock lock(&mutex_);
  const auto it = streams_.find(stream);
  CAIRN_CHECK(it != streams_.end());
  given = std::move(it->second);
  streams_.erase(it);
  --taken_;
}

void GetSlots::Tick() {
  std::vector<std::shared_ptr<Stream>> streams;
  {
    absl::MutexLock lock(&mutex_);
    streams.reserve(streams_.size());
    for (const auto& [key, stream] : streams_) streams.push_back(stream);
  }
  for (const auto& stream : streams) stream->OnTick();
}

}  // namespace cairn::node
