#include "client/cpp/write_stream.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/wire/frame_encoder.h"
#include "common/wire/limits.h"
#include "common/wire/message_codec.h"
#include "common/wire/payload_slice.h"

namespace cairn {
namespace {

constexpr char kWriteMethod[] = "/cairn.v1.CacheNode/Write";

}  // namespace

absl::Status StatusOfPieceError(const v1::PieceError& error) {
  // A refusal without a code would otherwise read as success.
  const bool known = error.code() > 0 && error.code() <= grpc::StatusCode::UNAUTHENTICATED;
  return absl::Status(
      known ? static_cast<absl::StatusCode>(error.code()) : absl::StatusCode::kUnknown,
      error.message());
}

WriteStream::WriteStream(NodeLink* link, const TokenId& token, absl::Duration timeout,
                         FramePacker* packer)
    : packer_(packer),
      token_(token),
      buffers_(link->frame_buffers()),
      borrowed_(link->borrowed_bytes()),
      call_(link->NextData(), kWriteMethod, timeout, link->options().metadata),
      items_answered_(packer->items_packed()),
      refused_(packer->item_count()) {}

absl::Status WriteStream::SendNext() {
  if (packer_->done()) {  // There was nothing to send.
    call_.BeginWritesDone();
    closed_ = writing_ = true;
    return absl::OkStatus();
  }
  const bool copied = packer_->payload() == FramePacker::Payload::kCopied;
  std::unique_ptr<FrameBuffers::Buffer> buffer;
  if (copied) buffer = buffers_->Take();
  absl::StatusOr<FramePacker::Frame> frame =
      packer_->Next(copied ? absl::MakeSpan(*buffer) : absl::Span<uint8_t>());
  if (!frame.ok()) return frame.status();
  frame->header.token = token_;
  std::vector<grpc::Slice> payload;
  if (copied) {
    payload.push_back(buffers_->ToSlice(std::move(buffer), frame->payload_bytes));
  } else {
    for (const absl::Span<const uint8_t> run : frame->runs) {
      payload.push_back(BorrowSlice(run, borrowed_->Borrow()));
    }
  }
  closed_ = packer_->done();
  call_.BeginWrite(EncodeFrame(FrameKind::kWriteRequest, frame->header, payload), closed_);
  writing_ = true;
  unanswered_.push_back({.pieces = std::move(frame->header.pieces),
                         .first_items = std::move(frame->first_items),
                         .items_after = packer_->items_packed()});
  return absl::OkStatus();
}

absl::Status WriteStream::TakeAnswer() {
  if (unanswered_.empty()) {
    return absl::InternalError("the node answered more frames than were sent");
  }
  v1::WriteResponse response;
  if (absl::Status status = DecodeMessage(call_.message(), &response); !status.ok()) {
    return absl::InternalError(status.message());
  }
  const Sent sent = std::move(unanswered_.front());
  unanswered_.pop_front();
  items_answered_ = sent.items_after;
  return AddErrors(sent, response);
}

absl::Status WriteStream::AddErrors(const Sent& sent, const v1::WriteResponse& response) {
  for (const v1::PieceError& error : response.errors()) {
    if (error.piece() >= sent.pieces.size()) {
      return absl::InternalError(absl::StrCat("the node refused piece ", error.piece(),
                                              " of a frame of ", sent.pieces.size()));
    }
    const PieceHeader& piece = sent.pieces[error.piece()];
    for (size_t i = 0; i < piece.digests.size(); ++i) {
      refused_[sent.first_items[error.piece()] + i] = true;
    }
    ++errors_total_;
    if (errors_.size() >= kSegmentErrorsMax) continue;
    errors_.push_back({.block = piece.block,
                       .first = {piece.group, piece.slice, piece.layer},
                       .layers = static_cast<uint32_t>(piece.digests.size()),
                       .status = StatusOfPieceError(error)});
  }
  return absl::OkStatus();
}

absl::Status WriteStream::Run() {
  absl::Status failure = SendNext();
  if (!failure.ok()) return failure;
  bool broken = false;  // A write failed: only the end is waited for.
  call_.BeginRead();
  while (true) {
    const bool may_send = !broken && !writing_ && !closed_ && failure.ok();
    if (may_send && (packer_->done() || unanswered_.size() < kFramesInFlightMax)) {
      failure = SendNext();
      if (!failure.ok()) call_.Cancel();
    }
    const RawCall::Done done = call_.Next();
    if (done.event == RawCall::Event::kWritten) {
      writing_ = false;
      broken = broken || !done.ok;
      continue;
    }
    if (!done.ok) break;
    if (failure.ok()) {
      failure = TakeAnswer();
      if (!failure.ok()) call_.Cancel();
    }
    call_.BeginRead();
  }
  const absl::Status status = call_.Finish();
  if (!failure.ok()) return failure;
  if (!status.ok()) return status;
  if (!packer_->done() || !unanswered_.empty()) {
    return absl::InternalError("the node ended the write before it answered each frame");
  }
  return absl::OkStatus();
}

}  // namespace cairn
