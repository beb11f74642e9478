// DecodeStream: one stream of attention steps to one node.
//
// Driven by the thread that uses it; no threads and no locks of ours. Several streams share a
// CallQueue: whoever waits on it moves all of them, so that parts on several nodes are asked at
// once. A step that is not answered within its time ends the stream, as anything does after which
// the order of answers is unknown; what became of steps under way is then unknown too, and the
// stream stays ended. Not thread-safe; borrows the queue, which outlives it.
#pragma once

#include <grpcpp/generic/generic_stub.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cairn/v1/decode.pb.h"
#include "client/cpp/call_queue.h"
#include "client/cpp/raw_call.h"
#include "common/base/clock.h"
#include "common/identity/fingerprint.h"

namespace cairn {

struct DecodeStreamOptions {
  // Longest wait for a step's answer, and for the opening's.
  absl::Duration step_timeout = absl::Seconds(10);
  // The stream ends after this, whatever goes on.
  absl::Duration lifetime = absl::Hours(24);
};

class DecodeStream {
 public:
  // Begins the stream and waits for nothing. Borrows all; `metadata` may be null.
  DecodeStream(CallQueue* queue, grpc::GenericStub* stub, const CallMetadata* metadata,
               const Clock* clock, const DecodeStreamOptions& options,
               const Fingerprint& fingerprint,
               absl::Span<const v1::AttentionParameters> parameters);

  DecodeStream(const DecodeStream&) = delete;
  DecodeStream& operator=(const DecodeStream&) = delete;

  // OK while steps can be sent and answers come; then why not, for good. CANCELLED after Close.
  const absl::Status& status() const { return status_; }
  // Whether the node took the opening.
  bool opened() const { return opened_; }
  // Steps that may be sent now, of kDecodeStepsMax.
  size_t room() const;
  // Sends a step; its number. REQUIRES: status() is OK, room() > 0, the request holds items and no
  // opening.
  uint64_t Send(v1::DecodeRequest request);

  // Takes in what has come, without waiting: answers, and deadlines that have passed.
  void Poll();
  // Answers of a step, once; nothing while it is under way, or when the stream ended before.
  std::optional<std::vector<v1::AttendResult>> Take(uint64_t step);
  // Waits for that until the step's deadline; the stream's status when it ended. REQUIRES: the
  // step was sent and not taken.
  absl::StatusOr<std::vector<v1::AttendResult>> Await(uint64_t step);
  // Whether Poll has something to take in that the queue has told already.
  bool HasEnded() const { return call_.HasEnded(); }
  // When the oldest step under way runs out of time; InfiniteFuture without any.
  absl::Time deadline() const;

  // Says that no step follows and waits at most `wait` for the node to agree; then cancels.
  void Close(absl::Duration wait);

  // Of messages, both ways.
  uint64_t bytes_sent() const { return bytes_sent_; }
  uint64_t bytes_received() const { return bytes_received_; }

 private:
  struct UnderWay {
    size_t items = 0;
    absl::Time deadline;
  };

  void Write(const v1::DecodeRequest& request);
  void BeginRead();
  void TakeMessage();
  void TakeResponse(v1::DecodeResponse response);
  void End(const absl::Status& status);

  CallQueue* const queue_;
  const Clock* const clock_;
  const DecodeStreamOptions options_;
  absl::Status status_;
  bool opened_ = false;
  bool call_ended_ = false;
  bool writing_ = false;
  bool reading_ = false;  // While steps are under way.
  uint64_t next_step_ = 1;
  std::deque<grpc::ByteBuffer> unwritten_;
  absl::flat_hash_map<uint64_t, UnderWay> under_way_;  // The opening is step 0.
  absl::flat_hash_map<uint64_t, std::vector<v1::AttendResult>> answered_;
  uint64_t bytes_sent_ = 0;
  uint64_t bytes_received_ = 0;
  RawCall call_;
};

// Waits until one of the queue's calls has something to say, at most until the first deadline of
// `streams`, and polls them all.
void AwaitAny(CallQueue* queue, const Clock& clock, absl::Span<DecodeStream* const> streams);

}  // namespace cairn
