#include "client/cpp/raw_call.h"

#include "client/cpp/call_runner.h"
#include "common/base/check.h"
#include "common/rpc/status_mapping.h"

namespace cairn {
RawCall::RawCall(grpc::GenericStub* stub, const std::string& method, absl::Duration timeout,
                 const CallMetadata* metadata)
    : RawCall(std::make_unique<CallQueue>(), nullptr, stub, method, timeout, metadata) {}

RawCall::RawCall(CallQueue* queue, grpc::GenericStub* stub, const std::string& method,
                 absl::Duration timeout, const CallMetadata* metadata)
    : RawCall(nullptr, queue, stub, method, timeout, metadata) {}

RawCall::RawCall(std::unique_ptr<CallQueue> own, CallQueue* shared, grpc::GenericStub* stub,
                 const std::string& method, absl::Duration timeout, const CallMetadata* metadata)
    : own_queue_(std::move(own)), queue_(own_queue_ != nullptr ? own_queue_.get() : shared) {
  if (metadata != nullptr) metadata->AddTo(&context_);
  SetDeadline(timeout, &context_);
  // It goes along with the first message: one packet, and one wake-up of the node, less.
  context_.set_initial_metadata_corked(true);
  call_ = stub->PrepareCall(&context_, method, queue_->queue());
  call_->StartCall(nullptr);  // Its tag never comes, as nothing is sent yet.
}

RawCall::~RawCall() {
  if (!started_ || finished_) return;
  context_.TryCancel();
  (void)Finish();
}

void RawCall::BeginWrite(const grpc::ByteBuffer& message, bool last) {
  CAIRN_CHECK(!writing_ && !finished_);
  writing_ = started_ = true;
  if (last) {
    call_->WriteLast(message, grpc::WriteOptions(), &write_);
  } else {
    call_->Write(message, &write_);
  }
}

void RawCall::BeginWritesDone() {
  CAIRN_CHECK(!writing_ && !finished_);
  writing_ = started_ = true;
  call_->WritesDone(&write_);
}

void RawCall::BeginRead() {
  CAIRN_CHECK(!reading_ && !finished_ && started_);
  reading_ = true;
  message_.Clear();
  call_->Read(&message_, &read_);
}

grpc::ByteBuffer RawCall::TakeMessage() {
  CAIRN_CHECK(!reading_);
  grpc::ByteBuffer taken;
  taken.Swap(&message_);
  return taken;
}

RawCall::Done RawCall::Next() {
  CAIRN_CHECK(writing_ || reading_ || HasEnded());
  while (!HasEnded()) queue_->Wait();
  const Done done = ended_.front();
  ended_.pop_front();
  return done;
}

std::optional<RawCall::Done> RawCall::NextWithin(absl::Duration wait) {
  if (!HasEnded() && !queue_->WaitWithin(wait)) return std::nullopt;
  if (!HasEnded()) return std::nullopt;
  return Next();
}

void RawCall::Ended(Kind kind, bool ok) {
  switch (kind) {
    case Kind::kWrite:
      writing_ = false;
      ended_.push_back({Event::kWritten, ok});
      return;
    case Kind::kRead:
      reading_ = false;
      ended_.push_back({Event::kRead, ok});
      return;
    case Kind::kFinish:
      status_is_there_ = true;
      return;
  }
}

absl::Status RawCall::Finish() {
  CAIRN_CHECK(started_ && !finished_);
  while (writing_ || reading_) queue_->Wait();
  finished_ = true;
  call_->Finish(&status_, &finish_);
  while (!status_is_there_) queue_->Wait();
  return FromGrpcStatus(status_);
}

}  // namespace cairn
