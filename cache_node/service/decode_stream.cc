#include "cache_node/service/decode_stream.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_node/decode/engine/item_checks.h"
#include "cache_node/service/decode_calls.h"
#include "cache_node/service/decode_messages.h"
#include "common/base/check.h"
#include "common/rpc/field_status.h"
#include "common/rpc/status_mapping.h"
#include "common/wire/decode_limits.h"

namespace cairn::node {
namespace {

absl::Status ClientGone() { return absl::CancelledError("the client is gone"); }

}  // namespace

grpc::ServerBidiReactor<v1::DecodeRequest, v1::DecodeResponse>* DecodeStream::Start(
    const Parts& parts, grpc::CallbackServerContext* context, std::unique_ptr<StreamRights> rights,
    RpcMetrics::Call* call) {
  const std::shared_ptr<DecodeStream> stream(new DecodeStream(parts, context, std::move(rights)));
  if (!parts.streams->Enter(stream)) return nullptr;
  stream->call_ = std::move(*call);
  stream->self_ = stream;
  stream->Read();
  return stream.get();  // gRPC calls OnDone after it got this, not before.
}

DecodeStream::DecodeStream(const Parts& parts, grpc::CallbackServerContext* context,
                           std::unique_ptr<StreamRights> rights)
    : parts_(parts), context_(context), rights_(std::move(rights)) {}

DecodeStream::~DecodeStream() {
  for (const std::unique_ptr<DecodeSlot>& slot : slots_) parts_.bytes->Give(slot->taken_bytes);
}

void DecodeStream::OnTick() {
  // Inside the gate nobody finishes, so the context is there.
  if (!gate_.Enter()) return;
  if (absl::Status rights = rights_->Check(); !rights.ok()) {
    FinishIf(gate_.Leave());
    return End(std::move(rights));
  }
  bool stalled = false;
  {
    absl::MutexLock lock(&mutex_);
    stalled = writing_ != nullptr && parts_.clock->SteadyNow() - writing_since_ > parts_.stall_max;
  }
  if (stalled) context_->TryCancel();  // A status would wait behind what nobody reads.
  FinishIf(gate_.Leave());
}

void DecodeStream::Read() {
  DecodeSlot* slot = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    if (reading_ != nullptr || no_more_) return;
    if (free_.empty()) {
      if (slots_.size() == kDecodeStepsMax) return;
      slots_.push_back(std::make_unique<DecodeSlot>());
      free_.push_back(slots_.back().get());
    }
    slot = free_.back();
    free_.pop_back();
    reading_ = slot;
  }
  if (!gate_.Enter()) return;
  StartRead(&slot->request);
  FinishIf(gate_.Leave());
}

void DecodeStream::OnReadDone(bool ok) {
  DecodeSlot* slot = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    CAIRN_CHECK(reading_ != nullptr);
    slot = std::exchange(reading_, nullptr);
    if (!ok) {
      no_more_ = true;
      free_.push_back(slot);
    }
  }
  if (!ok) {
    if (context_->IsCancelled()) return End(ClientGone());
    if (IsOver()) End(absl::OkStatus());
    return;
  }
  absl::Status status = rights_->Check();
  if (status.ok()) status = Take(slot);
  if (!status.ok()) return End(std::move(status));
  Read();
}

absl::Status DecodeStream::Take(DecodeSlot* slot) {
  const v1::DecodeRequest& request = slot->request;
  if (!opened_) {
    if (!request.has_open()) {
      return absl::InvalidArgumentError("open: missing in the first message of the stream");
    }
    if (request.step() != 0 || request.items_size() > 0) {
      return absl::InvalidArgumentError(
          "open: the message that opens a stream asks nothing else; send the step behind it");
    }
    if (absl::Status status = Open(request.open()); !status.ok()) return InField("open", status);
    opened_ = true;
    Write(slot);
    return absl::OkStatus();
  }
  if (request.has_open()) {
    return absl::InvalidArgumentError("open: the stream is open already; use another one");
  }
  if (request.step() == 0) {
    return absl::InvalidArgumentError("step: 0, must be the caller's number of the request");
  }
  if (absl::Status status = CheckItemCount(request.items()); !status.ok()) return status;
  Submit(slot);
  return absl::OkStatus();
}

absl::Status DecodeStream::Open(const v1::DecodeOpen& open) {
  const absl::StatusOr<DecodeNamespace> name_space =
      FindDecodeNamespace(*parts_.store, rights_->caller()->tenant, open.fingerprint());
  if (!name_space.ok()) return name_space.status();
  fingerprint_ = name_space->fingerprint;
  const auto count = static_cast<uint32_t>(open.parameters_size());
  if (count == 0 || count > kDecodeParametersMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "parameters: ", count, " sets, must be from 1 to ", kDecodeParametersMax, " of a stream"));
  }
  for (uint32_t i = 0; i < count; ++i) {
    absl::StatusOr<AttendShape> shape =
        ShapeFromProto(*name_space->map, open.parameters(static_cast<int>(i)));
    if (!shape.ok()) return InField(absl::StrCat("parameters[", i, "]"), shape.status());
    shapes_.push_back(std::make_unique<AttendShape>(*std::move(shape)));
  }
  return absl::OkStatus();
}

void DecodeStream::Submit(DecodeSlot* slot) {
  const v1::DecodeRequest& request = slot->request;
  const bool known = request.parameters() < shapes_.size();
  slot->tenant = rights_->caller()->tenant;
  slot->fingerprint = fingerprint_;
  slot->shape = shapes_[known ? request.parameters() : 0].get();
  slot->layer = request.layer();
  slot->response.set_step(request.step());
  ItemsFromProto(request.items(), /*sequences=*/true, slot, slot->response.mutable_results());
  if (!known) {
    RefuseAll(absl::InvalidArgumentError(absl::StrCat("parameters: ", request.parameters(),
                                                      ", the stream was opened with ",
                                                      shapes_.size(), " sets, from 0")),
              slot);
  }
  CheckItems(slot);
  // Fields that are not known here are in memory as well.
  slot->request_bytes = std::max<uint64_t>(slot->request_bytes, request.ByteSizeLong());
  const uint64_t bytes = slot->request_bytes + slot->result_bytes;
  absl::Status status;
  if (parts_.bytes->Take(bytes)) {
    slot->taken_bytes = bytes;
    slot->Lend(shared_from_this());
    status = parts_.engine->Submit(slot);
    if (status.ok()) return;
    slot->TakeBack();
  } else {
    status = NoBytesLeft(*parts_.bytes);
  }
  RefuseAll(WithDecodeRetry(std::move(status)), slot);
  slot->DropRequest();  // It is not charged any more, and the answer may wait for its client.
  OnStepDone(slot);
}

void DecodeStream::OnStepDone(DecodeSlot* slot) {
  StatusesToProto(*slot, slot->response.mutable_results());
  Write(slot);
}

void DecodeStream::Write(DecodeSlot* slot) {
  {
    absl::MutexLock lock(&mutex_);
    if (writing_ != nullptr) {
      answered_.push_back(slot);
      return;
    }
    writing_ = slot;
    writing_since_ = parts_.clock->SteadyNow();
  }
  StartWriting(slot);
}

void DecodeStream::StartWriting(DecodeSlot* slot) {
  if (!gate_.Enter()) return;
  StartWrite(&slot->response);
  FinishIf(gate_.Leave());
}

void DecodeStream::OnWriteDone(bool ok) {
  DecodeSlot* written = nullptr;
  DecodeSlot* next = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    written = std::exchange(writing_, nullptr);
    CAIRN_CHECK(written != nullptr);
    if (!answered_.empty()) {
      next = writing_ = answered_.front();
      answered_.pop_front();
      writing_since_ = parts_.clock->SteadyNow();
    }
  }
  GiveBack(written);
  if (!ok) return End(ClientGone());
  if (next != nullptr) StartWriting(next);
  if (IsOver()) return End(absl::OkStatus());
  Read();
}

void DecodeStream::GiveBack(DecodeSlot* slot) {
  parts_.bytes->Give(slot->taken_bytes);
  slot->Clear();
  absl::MutexLock lock(&mutex_);
  free_.push_back(slot);
}

bool DecodeStream::IsOver() const {
  absl::MutexLock lock(&mutex_);
  return no_more_ && free_.size() == slots_.size();
}

void DecodeStream::OnCancel() { End(ClientGone()); }

void DecodeStream::OnDone() {
  parts_.streams->Leave(this);
  const std::shared_ptr<DecodeStream> self = std::move(self_);
}

void DecodeStream::End(absl::Status status) {
  {
    absl::MutexLock lock(&mutex_);
    // Of those that are not lent to the engine nothing comes of it: the stream ends.
    for (const std::unique_ptr<DecodeSlot>& slot : slots_) slot->Cancel();
  }
  FinishIf(gate_.End(std::move(status)));
}

void DecodeStream::FinishIf(std::optional<absl::Status> status) {
  if (!status.has_value()) return;
  call_.End(status->code());
  Finish(ToGrpcStatus(*status));
}

}  // namespace cairn::node
