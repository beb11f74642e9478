#include "cache_node/service/write_stream.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/rpc/status_mapping.h"
#include "common/wire/frame_decoder.h"
#include "common/wire/limits.h"
#include "common/wire/message_codec.h"

namespace cairn::node {
namespace {

absl::Status ClientGone() { return absl::CancelledError("the client is gone"); }

}  // namespace

void WriteStream::ReadAhead::OnAdmitted() { CAIRN_CHECK(false); }
void WriteStream::ReadAhead::OnRefused(absl::Status) { CAIRN_CHECK(false); }

grpc::ServerGenericBidiReactor* WriteStream::Start(const Parts& parts,
                                                   std::unique_ptr<StreamRights> rights,
                                                   uint64_t writer, RpcMetrics::Call call) {
  std::shared_ptr<WriteStream> stream(
      new WriteStream(parts, std::move(rights), writer, std::move(call)));
  stream->self_ = stream;
  stream->AskForNext();
  return stream.get();  // gRPC calls OnDone after it got this, not before.
}

WriteStream::WriteStream(const Parts& parts, std::unique_ptr<StreamRights> rights, uint64_t writer,
                         RpcMetrics::Call call)
    : parts_(parts),
      rights_(std::move(rights)),
      writer_(parts.store, rights_->caller()->tenant, writer),
      call_(std::move(call)) {}

const InFlightBytes::Stream* WriteStream::HolderOf(Place place) const {
  return place == 0 ? static_cast<const InFlightBytes::Stream*>(this) : &read_ahead_;
}

void WriteStream::AskForNext() {
  const std::shared_ptr<WriteStream> self = shared_from_this();
  // It ended when it was told that it stalled while its answer was on its way.
  if (!gate_.Enter()) return;
  {
    absl::MutexLock lock(&mutex_);
    CAIRN_CHECK(!reading_.has_value() && received_.empty());
    reading_ = 0;
  }
  parts_.in_flight->Acquire(self, kMessageBytesMax);
  const std::optional<absl::Status> ended = gate_.Leave();
  if (ended.has_value()) parts_.in_flight->Leave(this);
  FinishIf(ended);
  // A client that went while the last message was handled has nobody else to take it out.
  if (cancelled_.load()) OnCancel();
  // Nor has one whose rights ended before it was in the queue.
  OnRightsChanged();
}

void WriteStream::TryReadAhead() {
  const std::shared_ptr<WriteStream> self = shared_from_this();
  if (!gate_.Enter()) return;
  std::optional<Place> place;
  bool waits = false;
  {
    absl::MutexLock lock(&mutex_);
    for (Place one = 0; one < kPlaces && !reading_.has_value() && !no_more_; ++one) {
      const bool taken = landing_place_ == one ||
                         std::find(received_.begin(), received_.end(), one) != received_.end();
      if (!taken) place = one;
    }
    if (place.has_value()) reading_ = place;
  }
  if (place.has_value()) {
    std::shared_ptr<InFlightBytes::Stream> holder = self;
    if (*place != 0) holder = std::shared_ptr<InFlightBytes::Stream>(self, &read_ahead_);
    if (parts_.in_flight->TryAcquire(std::move(holder), kMessageBytesMax)) {
      ReadInto(*place);
    } else {
      // Whoever answered meanwhile took the read for one under way.
      absl::MutexLock lock(&mutex_);
      reading_.reset();
      waits = IsIdle();
    }
  }
  FinishIf(gate_.Leave());
  if (waits) AskForNext();
}

void WriteStream::ReadInto(Place place) { StartRead(&requests_[place]); }

void WriteStream::OnAdmitted() {
  if (!gate_.Enter()) {
    parts_.in_flight->Release(this);
    return;
  }
  ReadInto(0);
  FinishIf(gate_.Leave());
}

void WriteStream::OnRefused(absl::Status status) { End(std::move(status)); }

void WriteStream::OnStalled(absl::Status status) {
  End(std::move(status));
  // Its message may have landed in the meantime, so that it waits for the next.
  parts_.in_flight->Leave(this);
}

void WriteStream::OnRightsChanged() {
  // Inside the gate nobody finishes, so the context that the rights look at is there.
  if (!gate_.Enter()) return;
  absl::Status rights = rights_->Check();
  FinishIf(gate_.Leave());
  if (!rights.ok()) OnStalled(std::move(rights));
}

void WriteStream::OnReadDone(bool ok) {
  Place place = 0;
  bool lands = ok;
  bool over = false;
  {
    absl::MutexLock lock(&mutex_);
    CAIRN_CHECK(reading_.has_value());
    place = *std::exchange(reading_, std::nullopt);
    no_more_ = !ok;
    lands = ok && !dropped_;
    if (lands) received_.push_back(place);
    over = IsOver();
  }
  if (!lands) {
    requests_[place].Clear();
    parts_.in_flight->Release(HolderOf(place));
  }
  if (lands) {
    TryReadAhead();
    LandNext();
  } else if (cancelled_.load()) {
    End(ClientGone());
  } else if (over) {
    End(absl::OkStatus());
  }
}

bool WriteStream::IsOver() const { return no_more_ && !landing_ && received_.empty(); }

bool WriteStream::IsIdle() const {
  return !no_more_ && !landing_ && received_.empty() && !reading_.has_value();
}

void WriteStream::LandNext() {
  Place place = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (landing_ || received_.empty()) return;
    landing_ = true;
    place = received_.front();
    landing_place_ = place;
    received_.erase(received_.begin());
  }
  absl::Status status = Land(requests_[place]);
  requests_[place].Clear();
  parts_.in_flight->Release(HolderOf(place));
  if (!status.ok()) return End(std::move(status));
  Answer();
}

void WriteStream::Answer() {
  bool last = false;
  {
    absl::MutexLock lock(&mutex_);
    landing_place_.reset();
    last = no_more_ && received_.empty() && !cancelled_.load();
  }
  if (last && gate_.EndAlone()) {
    // One packet, and one wake-up of the client, less.
    call_.End(absl::StatusCode::kOk);
    StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
    return;
  }
  if (!gate_.Enter()) return;
  StartWrite(&response_);
  FinishIf(gate_.Leave());
}

absl::Status WriteStream::Land(const grpc::ByteBuffer& message) {
  if (absl::Status rights = rights_->Check(); !rights.ok()) return rights;
  const absl::StatusOr<ReceivedFrame> frame = DecodeFrame(FrameKind::kWriteRequest, message);
  if (!frame.ok()) return frame.status();
  const uint64_t landed_before = writer_.bytes_landed();
  const absl::StatusOr<v1::WriteResponse> response = writer_.Land(*frame);
  if (!response.ok()) return response.status();
  parts_.bytes_landed.Increment(static_cast<double>(writer_.bytes_landed() - landed_before));
  response_ = EncodeMessage(*response);
  return absl::OkStatus();
}

void WriteStream::OnWriteDone(bool ok) {
  bool waits = false;
  bool over = false;
  {
    absl::MutexLock lock(&mutex_);
    landing_ = false;
    over = IsOver();
    waits = IsIdle();
  }
  if (!ok) {
    End(ClientGone());
  } else if (over) {
    End(absl::OkStatus());
  } else if (waits) {
    AskForNext();
  } else {
    TryReadAhead();
    LandNext();
  }
}

void WriteStream::OnCancel() {
  cancelled_.store(true);
  // When it does not wait, a read or write is under way, which fails by itself.
  if (parts_.in_flight->Leave(this)) End(ClientGone());
}

void WriteStream::DropReceived() {
  absl::InlinedVector<Place, kPlaces> received;
  {
    absl::MutexLock lock(&mutex_);
    dropped_ = true;
    received.swap(received_);
  }
  for (const Place place : received) {
    requests_[place].Clear();
    parts_.in_flight->Release(HolderOf(place));
  }
}

void WriteStream::OnDone() {
  writer_.End();
  const std::shared_ptr<WriteStream> self = std::move(self_);
}

void WriteStream::End(absl::Status status) {
  DropReceived();
  FinishIf(gate_.End(std::move(status)));
}

void WriteStream::FinishIf(std::optional<absl::Status> status) {
  if (!status.has_value()) return;
  call_.End(status->code());
  Finish(ToGrpcStatus(*status));
}

}  // namespace cairn::node
