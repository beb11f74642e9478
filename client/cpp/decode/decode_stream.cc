#include "client/cpp/decode/decode_stream.h"

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/wire/decode_limits.h"

namespace cairn {
namespace {

constexpr char kMethod[] = "/cairn.v1.Decode/DecodeStream";

grpc::ByteBuffer BytesOf(const v1::DecodeRequest& request) {
  grpc::ByteBuffer bytes;
  bool own_buffer = false;
  const grpc::Status status = grpc::GenericSerialize<grpc::ProtoBufferWriter, v1::DecodeRequest>(
      request, &bytes, &own_buffer);
  CAIRN_CHECK_MSG(status.ok(), status.error_message());
  return bytes;
}

}  // namespace

DecodeStream::DecodeStream(CallQueue* queue, grpc::GenericStub* stub, const CallMetadata* metadata,
                           const Clock* clock, const DecodeStreamOptions& options,
                           const Fingerprint& fingerprint,
                           absl::Span<const v1::AttentionParameters> parameters)
    : queue_(queue),
      clock_(clock),
      options_(options),
      call_(queue, stub, kMethod, options.lifetime, metadata) {
  CAIRN_CHECK(!parameters.empty() && parameters.size() <= kDecodeParametersMax);
  v1::DecodeRequest request;
  request.mutable_open()->set_fingerprint(std::string(fingerprint.view()));
  for (const v1::AttentionParameters& one : parameters)
    *request.mutable_open()->add_parameters() = one;
  under_way_[0] = {.items = 0, .deadline = clock_->SteadyNow() + options_.step_timeout};
  Write(request);
  BeginRead();
}

size_t DecodeStream::room() const {
  const size_t steps = under_way_.size() - under_way_.count(0);
  return steps < kDecodeStepsMax ? kDecodeStepsMax - steps : 0;
}

uint64_t DecodeStream::Send(v1::DecodeRequest request) {
  CAIRN_CHECK(status_.ok() && room() > 0);
  CAIRN_CHECK(!request.has_open() && request.items_size() > 0);
  const uint64_t step = next_step_++;
  request.set_step(step);
  under_way_[step] = {.items = static_cast<size_t>(request.items_size()),
                      .deadline = clock_->SteadyNow() + options_.step_timeout};
  Write(request);
  BeginRead();
  return step;
}

void DecodeStream::BeginRead() {
  if (reading_ || call_ended_) return;
  reading_ = true;
  call_.BeginRead();
}

void DecodeStream::Write(const v1::DecodeRequest& request) {
  grpc::ByteBuffer bytes = BytesOf(request);
  bytes_sent_ += bytes.Length();
  if (writing_) {
    unwritten_.push_back(std::move(bytes));
    return;
  }
  writing_ = true;
  call_.BeginWrite(bytes, /*last=*/false);
}

void DecodeStream::Poll() {
  while (queue_->WaitWithin(absl::ZeroDuration())) {
  }
  while (call_.HasEnded()) {
    const RawCall::Done done = call_.Next();
    if (done.event == RawCall::Event::kWritten) {
      writing_ = false;
      // A write that fails is followed by the end of the call, which says why.
      if (!done.ok || !status_.ok() || unwritten_.empty()) continue;
      writing_ = true;
      call_.BeginWrite(unwritten_.front(), /*last=*/false);
      unwritten_.pop_front();
    } else if (done.ok) {
      TakeMessage();
    } else {
      call_ended_ = true;
    }
  }
  if (call_ended_ && status_.ok()) {
    const absl::Status status = call_.Finish();
    End(status.ok() ? absl::UnavailableError("the node ended the stream") : status);
  }
  if (status_.ok() && deadline() <= clock_->SteadyNow()) {
    End(absl::DeadlineExceededError(absl::StrCat("a step was not answered within ",
                                                 absl::FormatDuration(options_.step_timeout),
                                                 "; the stream is given up")));
  }
}

void DecodeStream::TakeMessage() {
  reading_ = false;
  grpc::ByteBuffer message = call_.TakeMessage();
  bytes_received_ += message.Length();
  v1::DecodeResponse response;
  grpc::ProtoBufferReader reader(&message);
  if (!status_.ok()) return;
  if (message.Length() > 0 && !response.ParseFromZeroCopyStream(&reader)) {
    End(absl::InternalError("the node sent what is no DecodeResponse"));
    return;
  }
  TakeResponse(std::move(response));
  // The next read begins behind the next step: what it lets the node send would otherwise be a
  // packet of its own before it.
  if (status_.ok() && !under_way_.empty()) BeginRead();
}

void DecodeStream::TakeResponse(v1::DecodeResponse response) {
  const auto found = under_way_.find(response.step());
  if (found == under_way_.end()) {
    End(absl::InternalError(
        absl::StrCat("the node answered step ", response.step(), ", which is not under way")));
    return;
  }
  if (static_cast<size_t>(response.results_size()) != found->second.items) {
    End(absl::InternalError(absl::StrCat("the node answered ", response.results_size(),
                                         " results for ", found->second.items, " items of step ",
                                         response.step())));
    return;
  }
  under_way_.erase(found);
  if (response.step() == 0) {
    opened_ = true;
    return;
  }
  std::vector<v1::AttendResult>& results = answered_[response.step()];
  for (v1::AttendResult& result : *response.mutable_results()) {
    results.push_back(std::move(result));
  }
}

std::optional<std::vector<v1::AttendResult>> DecodeStream::Take(uint64_t step) {
  const auto found = answered_.find(step);
  if (found == answered_.end()) return std::nullopt;
  std::vector<v1::AttendResult> results = std::move(found->second);
  answered_.erase(found);
  return results;
}

absl::StatusOr<std::vector<v1::AttendResult>> DecodeStream::Await(uint64_t step) {
  CAIRN_CHECK(step > 0 && step < next_step_);
  while (true) {
    Poll();
    if (auto results = Take(step)) return *std::move(results);
    if (!status_.ok()) return status_;
    DecodeStream* const self = this;
    AwaitAny(queue_, *clock_, {&self, 1});
  }
}

absl::Time DecodeStream::deadline() const {
  absl::Time first = absl::InfiniteFuture();
  for (const auto& [step, one] : under_way_) first = std::min(first, one.deadline);
  return first;
}

void DecodeStream::End(const absl::Status& status) {
  CAIRN_CHECK(!status.ok() && status_.ok());
  status_ = status;
  under_way_.clear();
  unwritten_.clear();
  if (!call_ended_) call_.Cancel();
}

void DecodeStream::Close(absl::Duration wait) {
  const absl::Time until = clock_->SteadyNow() + wait;
  bool said = false;
  while (status_.ok()) {
    if (!said && !writing_ && unwritten_.empty()) {
      said = writing_ = true;
      call_.BeginWritesDone();
      BeginRead();
    }
    Poll();
    const absl::Duration left = until - clock_->SteadyNow();
    if (!status_.ok()) break;
    if (left <= absl::ZeroDuration() || !queue_->WaitWithin(left)) {
      End(absl::CancelledError("closed"));
    }
  }
  status_ = absl::CancelledError("closed");
}

void AwaitAny(CallQueue* queue, const Clock& clock, absl::Span<DecodeStream* const> streams) {
  absl::Time deadline = absl::InfiniteFuture();
  bool told = false;
  for (DecodeStream* stream : streams) {
    deadline = std::min(deadline, stream->deadline());
    told |= stream->HasEnded();
  }
  if (deadline == absl::InfiniteFuture()) return;
  const absl::Duration left = deadline - clock.SteadyNow();
  if (!told && left > absl::ZeroDuration()) (void)queue->WaitWithin(left);
  for (DecodeStream* stream : streams) stream->Poll();
}

}  // namespace cairn
