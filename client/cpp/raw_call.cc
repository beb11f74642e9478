#include "client/cpp/raw_call.h"

#include <grpc/support/time.h>

#include "client/cpp/call_runner.h"
#include "common/base/check.h"
#include "common/rpc/status_mapping.h"

namespace cairn {
namespace {

// Tags are never dereferenced.
void* Tag(intptr_t number) { return reinterpret_cast<void*>(number); }
constexpr intptr_t kStartTag = 1;
constexpr intptr_t kWriteTag = 2;
constexpr intptr_t kReadTag = 3;
constexpr intptr_t kFinishTag = 4;

}  // namespace

RawCall::RawCall(grpc::GenericStub* stub, const std::string& method, absl::Duration timeout,
                 const CallMetadata* metadata) {
  if (metadata != nullptr) metadata->AddTo(&context_);
  SetDeadline(timeout, &context_);
  // It goes along with the first message: one packet, and one wake-up of the node, less.
  context_.set_initial_metadata_corked(true);
  call_ = stub->PrepareCall(&context_, method, &queue_);
  call_->StartCall(Tag(kStartTag));  // Says nothing, as nothing is sent yet.
}

RawCall::~RawCall() {
  if (started_ && !finished_) {
    context_.TryCancel();
    (void)Finish();
  }
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

void RawCall::BeginWrite(const grpc::ByteBuffer& message, bool last) {
  CAIRN_CHECK(!writing_ && !finished_);
  writing_ = started_ = true;
  if (last) {
    call_->WriteLast(message, grpc::WriteOptions(), Tag(kWriteTag));
  } else {
    call_->Write(message, Tag(kWriteTag));
  }
}

void RawCall::BeginWritesDone() {
  CAIRN_CHECK(!writing_ && !finished_);
  writing_ = started_ = true;
  call_->WritesDone(Tag(kWriteTag));
}

void RawCall::BeginRead() {
  CAIRN_CHECK(!reading_ && !finished_ && started_);
  reading_ = true;
  message_.Clear();
  call_->Read(&message_, Tag(kReadTag));
}

grpc::ByteBuffer RawCall::TakeMessage() {
  CAIRN_CHECK(!reading_);
  grpc::ByteBuffer taken;
  taken.Swap(&message_);
  return taken;
}

RawCall::Done RawCall::Next() {
  CAIRN_CHECK(writing_ || reading_);
  return Wait();
}

std::optional<RawCall::Done> RawCall::NextWithin(absl::Duration wait) {
  CAIRN_CHECK(writing_ || reading_);
  void* tag = nullptr;
  bool ok = false;
  const gpr_timespec until =
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                   gpr_time_from_nanos(absl::ToInt64Nanoseconds(wait), GPR_TIMESPAN));
  const auto got = queue_.AsyncNext(&tag, &ok, until);
  if (got == grpc::CompletionQueue::TIMEOUT) return std::nullopt;
  CAIRN_CHECK(got == grpc::CompletionQueue::GOT_EVENT);
  return Ended(tag, ok);
}

RawCall::Done RawCall::Wait() {
  void* tag = nullptr;
  bool ok = false;
  CAIRN_CHECK(queue_.Next(&tag, &ok));
  return Ended(tag, ok);
}

RawCall::Done RawCall::Ended(const void* tag, bool ok) {
  if (tag == Tag(kWriteTag)) {
    writing_ = false;
    return {Event::kWritten, ok};
  }
  CAIRN_CHECK(tag == Tag(kReadTag));
  reading_ = false;
  return {Event::kRead, ok};
}

absl::Status RawCall::Finish() {
  CAIRN_CHECK(started_ && !finished_);
  while (writing_ || reading_) (void)Wait();
  finished_ = true;
  call_->Finish(&status_, Tag(kFinishTag));
  void* tag = nullptr;
  bool ok = false;
  CAIRN_CHECK(queue_.Next(&tag, &ok) && tag == Tag(kFinishTag));
  return FromGrpcStatus(status_);
}

}  // namespace cairn
