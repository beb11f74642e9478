#include "tests/cluster/flood_writer.h"

#include <grpcpp/create_channel.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/call_runner.h"
#include "client/cpp/raw_call.h"
#include "client/cpp/write_stream.h"
#include "common/base/check.h"
#include "common/base/random_source.h"
#include "common/identity/segment_digest.h"
#include "common/rpc/channel_options.h"
#include "common/rpc/retry_status.h"
#include "common/rpc/status_mapping.h"
#include "common/wire/frame_encoder.h"
#include "common/wire/message_codec.h"
#include "common/wire/payload_slice.h"
#include "tests/cluster/numbered_prompt.h"

namespace cairn::testing {
namespace {

// What a try is given at least, so that the last one is not cut before it could be answered.
constexpr absl::Duration kTryMin = absl::Seconds(30);
constexpr char kWriteMethod[] = "/cairn.v1.CacheNode/Write";

absl::Duration TimeFor(absl::Time deadline) {
  return std::max(deadline - absl::Now(), absl::ZeroDuration()) + kTryMin;
}

std::vector<uint32_t> TokensOf(uint32_t number, uint32_t block_tokens) {
  std::vector<uint32_t> tokens(block_tokens, 7);
  tokens[0] = number;
  return tokens;
}

BlockKey KeyOf(const NamespaceHandle& name_space, absl::Span<const uint32_t> tokens) {
  const Region region = {.scope = ScopeOf(""), .tokens = tokens, .external_ids = {}};
  const absl::StatusOr<Prompt> prompt = Prompt::Make(Sha256BlockHasher(), name_space, {&region, 1});
  CAIRN_CHECK_OK(prompt.status());
  return prompt->keys()[0];
}

}  // namespace

FloodWriter::FloodWriter(const std::string& node, uint32_t number,
                         const NamespaceHandle* name_space, absl::Span<const uint8_t> payload,
                         RetryWait* wait)
    : name_space_(name_space),
      payload_(payload),
      wait_(wait),
      tokens_(TokensOf(number, name_space->block_tokens())),
      key_(KeyOf(*name_space, tokens_)),
      channel_(grpc::CreateCustomChannel(node, grpc::InsecureChannelCredentials(),
                                         MakeChannelArguments())),
      stub_(channel_),
      raw_stub_(channel_) {
  const PayloadMap& map = name_space->payload_map();
  CAIRN_CHECK(map.parts().size() == 1 && payload.size() == map.block_bytes());
  for (size_t i = 0; i < map.segment_count(); ++i) {
    digests_.push_back(SegmentDigest(key_, map.SegmentAt(i),
                                     payload.subspan(map.SegmentOffset(i), map.SegmentBytesAt(i))));
  }
}

bool FloodWriter::Connect(absl::Duration timeout) {
  return channel_->WaitForConnected(absl::ToChronoTime(absl::Now() + timeout));
}

FloodWriter::Outcome FloodWriter::Put(absl::Time deadline) {
  while (true) {
    const absl::Status status = TryPut(deadline);
    if (status.ok()) return Outcome::kLanded;
    const std::optional<absl::Duration> delay = RetryAfter(status);
    if (status.code() != absl::StatusCode::kResourceExhausted || !delay) {
      failure_ = status.ToString();
      return Outcome::kFailed;
    }
    ++refusals_;
    if (absl::Now() + *delay >= deadline || !wait_->WaitFor(*delay)) return Outcome::kRefused;
  }
}

FloodWriter::Outcome FloodWriter::Blind(absl::Time deadline) {
  const absl::Status status = Write(SecureRandom().New<TokenId>(), deadline);
  if (status.code() == absl::StatusCode::kAborted) return Outcome::kUnknown;
  if (status.code() == absl::StatusCode::kResourceExhausted && RetryAfter(status)) {
    ++refusals_;
    return Outcome::kRefused;
  }
  failure_ = status.ToString();
  return Outcome::kFailed;
}

absl::Status FloodWriter::TryPut(absl::Time deadline) {
  const absl::StatusOr<TokenId> token = Reserve(deadline);
  if (!token.ok()) return token.status();
  absl::Status status = Write(*token, deadline);
  if (status.ok()) return Commit(*token, deadline);
  Abort(*token, deadline);
  return status;
}

absl::StatusOr<TokenId> FloodWriter::Reserve(absl::Time deadline) {
  v1::ReserveRequest request;
  request.set_fingerprint(std::string(name_space_->fingerprint().view()));
  request.mutable_scope()->set_tenant(ScopeOf("").tenant);
  request.set_keys(std::string(key_.view()));
  for (const uint32_t token : tokens_) request.add_tokens(token);
  grpc::ClientContext context;
  SetDeadline(TimeFor(deadline), &context);
  v1::ReserveResponse response;
  const absl::Status status = FromGrpcStatus(stub_.Reserve(&context, request, &response));
  if (!status.ok()) return status;
  if (response.answers_size() != 1) return absl::InternalError("not one answer");
  const v1::ReserveOutcome outcome = response.answers(0).outcome();
  if (outcome == v1::RESERVE_OUTCOME_NO_SPACE || outcome == v1::RESERVE_OUTCOME_QUOTA) {
    const absl::Status refused = absl::ResourceExhaustedError("no space");
    if (response.retry_after_ms() == 0) return absl::InternalError("no space and no retry delay");
    return WithRetryAfter(refused, absl::Milliseconds(response.retry_after_ms()));
  }
  const auto token = TokenId::FromBytes(response.token());
  if (outcome == v1::RESERVE_OUTCOME_RESERVED && token) return *token;
  return absl::InternalError(absl::StrCat("reserve: ", v1::ReserveOutcome_Name(outcome)));
}

grpc::ByteBuffer FloodWriter::FrameOf(const TokenId& token, uint32_t layer) const {
  const PayloadMap& map = name_space_->payload_map();
  PieceHeader piece;
  piece.layer = layer;
  piece.length = static_cast<uint32_t>(map.SegmentBytesAt(layer));
  piece.digests = {digests_[layer]};
  FrameHeader header;
  header.token = token;
  header.pieces = {piece};
  const grpc::Slice slice =
      BorrowSlice(payload_.subspan(map.SegmentOffset(layer), piece.length), nullptr);
  return EncodeFrame(FrameKind::kWriteRequest, header, {&slice, 1});
}

absl::Status FloodWriter::Write(const TokenId& token, absl::Time deadline) {
  const auto frames = static_cast<uint32_t>(digests_.size());
  RawCall call(&raw_stub_, kWriteMethod, TimeFor(deadline), /*metadata=*/nullptr);
  uint32_t sent = 1;
  uint32_t answered = 0;
  absl::Status error;
  call.BeginWrite(FrameOf(token, 0), sent == frames);
  call.BeginRead();
  while (true) {
    const RawCall::Done done = call.Next();
    if (done.event == RawCall::Event::kWritten) {
      if (done.ok && sent < frames) {
        if (frame_wait_ > absl::ZeroDuration() && !wait_->WaitFor(frame_wait_)) break;
        const uint32_t layer = sent++;
        call.BeginWrite(FrameOf(token, layer), sent == frames);
      }
      continue;
    }
    if (!done.ok) break;
    v1::WriteResponse response;
    if (absl::Status status = DecodeMessage(call.message(), &response); !status.ok()) return status;
    ++answered;
    if (response.errors_size() > 0) error = StatusOfPieceError(response.errors(0));
    call.BeginRead();
  }
  if (absl::Status status = call.Finish(); !status.ok()) return status;
  if (!error.ok()) return error;
  if (answered != frames) return absl::InternalError(absl::StrCat(answered, " frames answered"));
  return absl::OkStatus();
}

absl::Status FloodWriter::Commit(const TokenId& token, absl::Time deadline) {
  v1::CommitRequest request;
  request.set_token(std::string(token.view()));
  v1::Piece* const piece = request.add_pieces();
  for (const uint64_t digest : digests_) piece->add_digests(digest);
  grpc::ClientContext context;
  SetDeadline(TimeFor(deadline), &context);
  v1::CommitResponse response;
  const absl::Status status = FromGrpcStatus(stub_.Commit(&context, request, &response));
  if (!status.ok()) return status;
  return response.complete() ? absl::OkStatus() : absl::InternalError("commit: not complete");
}

void FloodWriter::Abort(const TokenId& token, absl::Time deadline) {
  v1::AbortRequest request;
  request.set_token(std::string(token.view()));
  grpc::ClientContext context;
  SetDeadline(TimeFor(deadline), &context);
  v1::AbortResponse response;
  // If it does not arrive, the token ends by its time to live.
  const grpc::Status ignored = stub_.Abort(&context, request, &response);
  (void)ignored;
}

}  // namespace cairn::testing
