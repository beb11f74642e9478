// SessionStreams: a session's stream to each node that it asks, over one queue.
//
// Streams are opened when they are first needed, and anew when they were lost. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "client/cpp/decode/decode_client.h"
#include "client/cpp/decode/decode_stream.h"
#include "common/base/clock.h"

namespace cairn {

class SessionStreams {
 public:
  SessionStreams(const Fingerprint& fingerprint, std::vector<v1::AttentionParameters> parameters,
                 const DecodeStreamOptions& options, const Clock* clock);
  ~SessionStreams();

  struct Opened {
    DecodeStream* stream = nullptr;
    uint64_t generation = 0;  // Moves on when the stream is another.
  };

  // The stream to a node, as it is; opened if there was none yet.
  Opened Get(DecodeClient* node);
  // Another one in place of a stream that ended.
  void Reconnect(DecodeClient* node);

  // Waits until something came on any stream that has steps under way; takes it in on all.
  void Await();

  // Of all streams there were.
  uint64_t bytes_sent() const;
  uint64_t bytes_received() const;

 private:
  struct Entry {
    std::unique_ptr<DecodeStream> stream;
    uint64_t generation = 0;
  };

  void Open(DecodeClient* node, Entry* entry);

  const Fingerprint fingerprint_;
  const std::vector<v1::AttentionParameters> parameters_;
  const DecodeStreamOptions options_;
  const Clock* const clock_;
  CallQueue queue_;
  absl::flat_hash_map<DecodeClient*, Entry> streams_;
  uint64_t bytes_sent_before_ = 0;  // By streams that ended.
  uint64_t bytes_received_before_ = 0;
};

}  // namespace cairn
