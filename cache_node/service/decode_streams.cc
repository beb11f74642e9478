#include "cache_node/service/decode_streams.h"

#include <utility>
#include <vector>

namespace cairn::node {

bool DecodeStreams::Enter(std::shared_ptr<Stream> stream) {
  absl::MutexLock lock(&mutex_);
  if (streams_.size() >= streams_max_) return false;
  const Stream* const key = stream.get();
  streams_.emplace(key, std::move(stream));
  return true;
}

void DecodeStreams::Leave(const Stream* stream) {
  std::shared_ptr<Stream> left;
  absl::MutexLock lock(&mutex_);
  const auto it = streams_.find(stream);
  if (it == streams_.end()) return;
  left = std::move(it->second);  // It may end with the last pointer, outside the lock.
  streams_.erase(it);
}

template <typename Call>
void DecodeStreams::ForAll(const Call& call) {
  std::vector<std::shared_ptr<Stream>> streams;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [key, stream] : streams_) streams.push_back(stream);
  }
  for (const std::shared_ptr<Stream>& stream : streams) call(stream.get());
}

void DecodeStreams::Tick() {
  ForAll([](Stream* stream) { stream->OnTick(); });
}

void DecodeStreams::EndAll(const absl::Status& status) {
  ForAll([&](Stream* stream) { stream->OnEnd(status); });
}

size_t DecodeStreams::size() const {
  absl::MutexLock lock(&mutex_);
  return streams_.size();
}

}  // namespace cairn::node
