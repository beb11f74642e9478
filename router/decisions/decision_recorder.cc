#include "router/decisions/decision_recorder.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cairn/v1/decision.pb.h"
#include "common/base/check.h"
#include "router/decisions/decision_codec.h"
#include "router/decisions/decision_frames.h"

namespace cairn::router {
namespace {

// Of frames, between two writes.
constexpr size_t kBufferBytes = size_t{256} << 10;
// What a file's head and first record take, at most.
constexpr uint64_t kHeadRoomBytes = 4096;

uint64_t FrameBytes(absl::string_view payload) { return kDecisionFrameHeadBytes + payload.size(); }

// Of 2^64 bookings, those below this are wanted.
uint64_t WantedBelow(double share) {
  CAIRN_CHECK(share > 0 && share <= 1);
  return share == 1 ? UINT64_MAX : static_cast<uint64_t>(std::ldexp(share, 64));
}

uint64_t BytesOf(const Decision& decision) {
  return sizeof(Decision) + decision.policy.capacity() +
         decision.snapshot.replicas.capacity() * sizeof(ReplicaView) +
         decision.replicas.capacity() * sizeof(ReplicaId) +
         decision.ranked.capacity() * sizeof(RankedChoice);
}

}  // namespace

DecisionRecorder::DecisionRecorder(const DecisionRecorderOptions& options,
                                   std::unique_ptr<DecisionStorage> storage, const Clock* clock,
                                   LineLog log)
    : options_(options),
      wanted_below_(WantedBelow(options.share)),
      storage_(std::move(storage)),
      clock_(clock),
      log_(std::move(log)),
      started_(clock->WallNow()),
      message_(std::make_unique<v1::DecisionRecord>()) {
  CAIRN_CHECK(storage_ != nullptr && options.bytes_max > 0 && options.queue_bytes_max > 0);
}

DecisionRecorder::~DecisionRecorder() = default;

absl::Status DecisionRecorder::Open() {
  CAIRN_CHECK(!recording());
  absl::Status status = Begin();
  if (status.ok()) status = WriteBuffer();
  if (status.ok()) recording_ = true;
  return status;
}

bool DecisionRecorder::Wants(const BookingId& booking) const {
  if (!recording()) return false;
  uint64_t place = 0;
  std::memcpy(&place, booking.bytes.data(), sizeof(place));
  return place <= wanted_below_;
}

void DecisionRecorder::OnDecision(Decision decision) {
  CAIRN_CHECK(decision.names != nullptr && !decision.ranked.empty());
  decision.time = clock_->WallNow();
  const uint64_t bytes = BytesOf(decision);
  Take(std::move(decision), bytes);
}

void DecisionRecorder::OnOutcome(DecisionOutcome outcome) {
  outcome.time = clock_->WallNow();
  Take(outcome, sizeof(Waiting));
}

void DecisionRecorder::Take(Waiting record, uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  if (queue_bytes_ + bytes > options_.queue_bytes_max) {
    ++lost_;
    ++counters_.dropped;
    return;
  }
  queue_bytes_ += bytes;
  queue_.push_back(std::move(record));
}

void DecisionRecorder::Flush() {
  std::vector<Waiting> records;
  uint64_t bytes = 0;
  uint64_t lost = 0;
  {
    absl::MutexLock lock(&mutex_);
    records.swap(queue_);
    bytes = queue_bytes_;
    lost = std::exchange(lost_, 0);
  }
  const uint64_t before = written_.decisions_recorded + written_.outcomes_recorded;
  if (recording() && (!records.empty() || lost > 0)) {
    absl::Status status = Write(records, lost);
    if (status.ok()) status = WriteBuffer();
    if (!status.ok()) {
      recording_ = false;
      if (log_) log_(absl::StrCat("decisions are not recorded any more: ", status.message()));
    }
  }
  const uint64_t recorded = written_.decisions_recorded + written_.outcomes_recorded - before;
  const uint64_t unwritten = records.size() - recorded;
  records.clear();
  absl::MutexLock lock(&mutex_);
  queue_bytes_ -= bytes;
  const uint64_t dropped = counters_.dropped + unwritten;
  counters_ = written_;
  counters_.dropped = dropped;
}

absl::Status DecisionRecorder::Begin() {
  if (absl::Status status = storage_->Begin(); !status.ok()) return status;
  buffer_ = DecisionHead();
  file_bytes_ = buffer_.size();
  file_has_table_ = false;
  v1::DecisionRecord record;
  ToMessage(DecisionRun{.started = started_,
                        .policy = options_.policy,
                        .options = options_.policy_options,
                        .share = options_.share},
            record.mutable_run());
  return Add(record.SerializeAsString());
}

absl::Status DecisionRecorder::Write(const std::vector<Waiting>& records, uint64_t lost) {
  for (const Waiting& waiting : records) {
    const absl::Status status =
        std::visit([this](const auto& record) { return Write(record); }, waiting);
    if (!status.ok()) return status;
  }
  lost += std::exchange(left_out_, 0);
  if (lost == 0) return absl::OkStatus();
  v1::DecisionRecord record;
  record.mutable_lost()->set_records(lost);
  const std::string payload = record.SerializeAsString();
  const absl::StatusOr<bool> fits = MakeRoom(FrameBytes(payload));
  if (!fits.ok()) return fits.status();
  return *fits ? Add(payload) : absl::OkStatus();
}

absl::Status DecisionRecorder::Write(const Decision& decision) {
  if (names_ != decision.names) {
    v1::DecisionRecord record;
    ToMessage(*decision.names, record.mutable_replicas());
    names_ = decision.names;
    table_ = record.SerializeAsString();
    file_has_table_ = false;
  }
  v1::Decision* const message = message_->mutable_decision();
  message->Clear();
  ToMessage(decision, message);
  if (!DecisionFromMessage(*message).ok()) return LeaveOut();
  CAIRN_CHECK(message_->SerializeToString(&payload_));
  const absl::StatusOr<bool> fits = MakeRoom(FrameBytes(table_) + FrameBytes(payload_));
  if (!fits.ok()) return fits.status();
  if (!*fits) return LeaveOut();
  if (!file_has_table_) {
    if (absl::Status status = Add(table_); !status.ok()) return status;
    file_has_table_ = true;
  }
  ++buffered_.decisions_recorded;
  return Add(payload_);
}

absl::Status DecisionRecorder::Write(const DecisionOutcome& outcome) {
  v1::DecisionRecord record;
  ToMessage(outcome, record.mutable_outcome());
  if (!OutcomeFromMessage(record.outcome()).ok()) return LeaveOut();
  const std::string payload = record.SerializeAsString();
  const absl::StatusOr<bool> fits = MakeRoom(FrameBytes(payload));
  if (!fits.ok()) return fits.status();
  if (!*fits) return LeaveOut();
  ++buffered_.outcomes_recorded;
  return Add(payload);
}

absl::Status DecisionRecorder::LeaveOut() {
  ++left_out_;
  return absl::OkStatus();
}

absl::StatusOr<bool> DecisionRecorder::MakeRoom(uint64_t bytes) {
  const uint64_t file_bytes_max = options_.bytes_max / 2;
  if (file_bytes_ + bytes <= file_bytes_max) return true;
  if (bytes + kHeadRoomBytes > file_bytes_max || bytes > kDecisionPayloadBytesMax) return false;
  absl::Status status = WriteBuffer();
  if (status.ok()) status = Begin();
  if (!status.ok()) return status;
  return true;
}

absl::Status DecisionRecorder::Add(absl::string_view payload) {
  const size_t before = buffer_.size();
  AppendDecisionFrame(payload, file_bytes_, &buffer_);
  file_bytes_ += buffer_.size() - before;
  return buffer_.size() < kBufferBytes ? absl::OkStatus() : WriteBuffer();
}

absl::Status DecisionRecorder::WriteBuffer() {
  if (absl::Status status = storage_->Append(buffer_); !status.ok()) return status;
  written_.decisions_recorded += buffered_.decisions_recorded;
  written_.outcomes_recorded += buffered_.outcomes_recorded;
  written_.bytes += buffer_.size();
  buffered_ = {};
  buffer_.clear();
  return absl::OkStatus();
}

DecisionRecorder::Counters DecisionRecorder::counters() const {
  absl::MutexLock lock(&mutex_);
  return counters_;
}

}  // namespace cairn::router
