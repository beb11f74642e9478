// DecisionRecorder: writes what the router decided, and what became of it, to files.
//
// Takes at once and writes later: OnDecision and OnOutcome only put their record into a queue of at
// most kDecisionQueueBytes; the owner calls Flush() regularly, on one thread at a time, and once
// more at the end. What the queue cannot hold is dropped and counted, and the file says where. When
// a file is half of `bytes_max`, the next one begins and the one before the last goes, so the two
// never hold more.
//
// Thread-safe but for Flush. An error of the storage ends the recording, with one line in the log:
// routing goes on, nothing is wanted any more. It starts no thread and reads no clock but its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/server/line_log.h"
#include "router/decisions/decision_sink.h"
#include "router/decisions/decision_storage.h"

namespace cairn::v1 {
class DecisionRecord;
}  // namespace cairn::v1

namespace cairn::router {

// Records that wait to be written, as they lie in memory.
inline constexpr uint64_t kDecisionQueueBytes = uint64_t{32} << 20;

struct DecisionRecorderOptions {
  // Of both files together.
  uint64_t bytes_max = uint64_t{256} << 20;
  // Of the requests, above 0 to 1.
  double share = 1;
  uint64_t queue_bytes_max = kDecisionQueueBytes;
  // Of the router that decides. The recorder adds when it began, and the share.
  std::string policy;
  PrefixCostOptions policy_options;
};

class DecisionRecorder final : public DecisionSink {
 public:
  struct Counters {
    uint64_t decisions_recorded = 0;
    uint64_t outcomes_recorded = 0;
    uint64_t dropped = 0;  // Of either kind.
    uint64_t bytes = 0;    // Written.
  };

  // `clock` outlives the recorder; `log` may be null. REQUIRES: options within their bounds.
  DecisionRecorder(const DecisionRecorderOptions& options, std::unique_ptr<DecisionStorage> storage,
                   const Clock* clock, LineLog log = nullptr);
  ~DecisionRecorder() override;

  // Begins the first file. Before anything else; what fails here was never recording.
  absl::Status Open();
  // Writes what waits.
  void Flush() ABSL_LOCKS_EXCLUDED(mutex_);

  bool Wants(const BookingId& booking) const override;
  void OnDecision(Decision decision) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnOutcome(DecisionOutcome outcome) override ABSL_LOCKS_EXCLUDED(mutex_);

  // False before Open and after an error.
  bool recording() const { return recording_.load(std::memory_order_relaxed); }
  Counters counters() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Waiting = std::variant<Decision, DecisionOutcome>;

  void Take(Waiting record, uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // The rest is Flush's.
  absl::Status Begin();
  absl::Status Write(const std::vector<Waiting>& records, uint64_t lost);
  absl::Status Write(const Decision& decision);
  absl::Status Write(const DecisionOutcome& outcome);
  // One that no file has room for, or that a reader would take for damage and read no further.
  absl::Status LeaveOut();
  // Begins the next file where `bytes` more do not fit into this one; false when no file has room.
  absl::StatusOr<bool> MakeRoom(uint64_t bytes);
  absl::Status Add(absl::string_view payload);
  absl::Status WriteBuffer();

  const DecisionRecorderOptions options_;
  const uint64_t wanted_below_;
  const std::unique_ptr<DecisionStorage> storage_;
  const Clock* const clock_;
  const LineLog log_;
  const absl::Time started_;
  std::atomic<bool> recording_{false};

  // The message that each decision is written through, and its payload: made once.
  const std::unique_ptr<v1::DecisionRecord> message_;
  std::string payload_;
  std::string buffer_;  // Frames that are not written yet, and what they count.
  Counters buffered_;
  Counters written_;
  uint64_t file_bytes_ = 0;  // Of this file, with the buffer.
  // Those of the last decision, held so that no others get their address; as a payload; and
  // whether this file has it.
  std::shared_ptr<const ReplicaNames> names_;
  std::string table_;
  bool file_has_table_ = false;
  uint64_t left_out_ = 0;  // And not yet said in the file.

  mutable absl::Mutex mutex_;
  std::vector<Waiting> queue_ ABSL_GUARDED_BY(mutex_);
  uint64_t queue_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // Also of what Flush is writing.
  uint64_t lost_ ABSL_GUARDED_BY(mutex_) = 0;         // Since the last Flush.
  Counters counters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn::router
