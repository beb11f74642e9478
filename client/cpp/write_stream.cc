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
// From here on two calls at once move a write.
constexpr uint64_t kTwoLanesBytesMin = 8 << 20;

// A segment that is cut into frames has one writer, so one lane.
size_t LanesFor(const FramePacker& packer) {
  return packer.uncut_bytes_left() >= kTwoLanesBytesMin ? 2 : 1;
}

}  // namespace

absl::Status StatusOfPieceError(const v1::PieceError& error) {
  // A refusal without a code would otherwise read as success.
  const bool known = error.code() > 0 && error.code() <= grpc::StatusCode::UNAUTHENTICATED;
  return absl::Status(
      known ? static_cast<absl::StatusCode>(error.code()) : absl::StatusCode::kUnknown,
      error.message());
}

WriteStream::Lane::Lane(CallQueue* queue, NodeLink* link, absl::Duration timeout)
    : call(queue, link->NextData(), kWriteMethod, timeout, link->options().metadata) {}

WriteStream::WriteStream(NodeLink* link, const TokenId& token, absl::Duration timeout,
                         FramePacker* packer)
    : packer_(packer),
      token_(token),
      buffers_(link->frame_buffers()),
      borrowed_(link->borrowed_bytes()),
      items_answered_(packer->items_packed()),
      refused_(packer->item_count()) {
  for (size_t i = 0; i < LanesFor(*packer); ++i) {
    lanes_.push_back(std::make_unique<Lane>(&queue_, link, timeout));
  }
}

absl::Status WriteStream::SendNext(Lane* lane) {
  if (packer_->done()) {
    lane->call.BeginWritesDone();
    lane->closed = lane->writing = true;
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
  lane->closed = packer_->done();
  lane->call.BeginWrite(EncodeFrame(FrameKind::kWriteRequest, frame->header, payload),
                        lane->closed);
  lane->writing = true;
  lane->unanswered.push_back(first_sent_ + sent_.size());
  sent_.push_back({.pieces = std::move(frame->header.pieces),
                   .first_items = std::move(frame->first_items),
                   .items_after = packer_->items_packed(),
                   .answered = false});
  return absl::OkStatus();
}

absl::Status WriteStream::TakeAnswer(Lane* lane) {
  if (lane->unanswered.empty()) {
    return absl::InternalError("the node answered more frames than were sent");
  }
  v1::WriteResponse response;
  if (absl::Status status = DecodeMessage(lane->call.message(), &response); !status.ok()) {
    return absl::InternalError(status.message());
  }
  Sent& sent = sent_[lane->unanswered.front() - first_sent_];
  lane->unanswered.pop_front();
  if (absl::Status status = AddErrors(sent, response); !status.ok()) return status;
  sent.answered = true;
  while (!sent_.empty() && sent_.front().answered) {
    items_answered_ = sent_.front().items_after;
    sent_.pop_front();
    ++first_sent_;
  }
  return absl::OkStatus();
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

void WriteStream::Fail(absl::Status status) {
  if (!failure_.ok()) return;
  failure_ = std::move(status);
  for (const std::unique_ptr<Lane>& lane : lanes_) lane->call.Cancel();
}

void WriteStream::Continue(Lane* lane) {
  const RawCall::Done done = lane->call.Next();
  if (done.event == RawCall::Event::kWritten) {
    lane->writing = false;
    lane->broken = lane->broken || !done.ok;
    return;
  }
  if (!done.ok) {
    lane->over = true;
    const absl::Status status = lane->call.Finish();
    if (!status.ok()) Fail(status);
    return;
  }
  if (failure_.ok()) {
    if (absl::Status status = TakeAnswer(lane); !status.ok()) Fail(std::move(status));
  }
  lane->call.BeginRead();
}

absl::Status WriteStream::Run() {
  for (const std::unique_ptr<Lane>& lane : lanes_) {
    if (absl::Status status = SendNext(lane.get()); !status.ok()) return status;
    lane->call.BeginRead();
  }
  size_t running = lanes_.size();
  while (running > 0) {
    bool waits = true;
    for (const std::unique_ptr<Lane>& lane : lanes_) {
      if (lane->over) continue;
      if (failure_.ok() && lane->Ready(packer_->done())) {
        if (absl::Status status = SendNext(lane.get()); !status.ok()) Fail(std::move(status));
      }
      if (!lane->call.HasEnded()) continue;
      Continue(lane.get());
      if (lane->over) --running;
      waits = false;
    }
    if (waits) queue_.Wait();
  }
  if (!failure_.ok()) return failure_;
  if (!packer_->done() || !sent_.empty()) {
    return absl::InternalError("the node ended the write before it answered each frame");
  }
  return absl::OkStatus();
}

}  // namespace cairn
