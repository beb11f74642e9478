#include "client/cpp/decode/session_streams.h"

#include <utility>

namespace cairn {
namespace {

// A node is told that the stream is over; one that hangs is not waited for.
constexpr absl::Duration kCloseWait = absl::Milliseconds(200);

}  // namespace

SessionStreams::SessionStreams(const Fingerprint& fingerprint,
                               std::vector<v1::AttentionParameters> parameters,
                               const DecodeStreamOptions& options, const Clock* clock)
    : fingerprint_(fingerprint),
      parameters_(std::move(parameters)),
      options_(options),
      clock_(clock) {}

SessionStreams::~SessionStreams() {
  for (auto& [node, entry] : streams_) {
    // With steps under way nobody waits for what they say.
    const bool idle = entry.stream->deadline() == absl::InfiniteFuture();
    entry.stream->Close(idle ? kCloseWait : absl::ZeroDuration());
  }
}

void SessionStreams::Open(DecodeClient* node, Entry* entry) {
  entry->stream = node->OpenStream(&queue_, fingerprint_, parameters_, options_);
  ++entry->generation;
}

SessionStreams::Opened SessionStreams::Get(DecodeClient* node) {
  Entry& entry = streams_[node];
  if (entry.stream == nullptr) Open(node, &entry);
  return {entry.stream.get(), entry.generation};
}

void SessionStreams::Reconnect(DecodeClient* node) {
  Entry& entry = streams_[node];
  if (entry.stream != nullptr) {
    bytes_sent_before_ += entry.stream->bytes_sent();
    bytes_received_before_ += entry.stream->bytes_received();
  }
  Open(node, &entry);
}

void SessionStreams::Await() {
  std::vector<DecodeStream*> all;
  for (const auto& [node, entry] : streams_) all.push_back(entry.stream.get());
  AwaitAny(&queue_, *clock_, all);
}

uint64_t SessionStreams::bytes_sent() const {
  uint64_t bytes = bytes_sent_before_;
  for (const auto& [node, entry] : streams_) bytes += entry.stream->bytes_sent();
  return bytes;
}

uint64_t SessionStreams::bytes_received() const {
  uint64_t bytes = bytes_received_before_;
  for (const auto& [node, entry] : streams_) bytes += entry.stream->bytes_received();
  return bytes;
}

}  // namespace cairn
