// Promises held against every input: whatever the bytes and however they are cut, decoding either
// fails with INVALID_ARGUMENT or gives a frame that (1) the generated class gives too, (2) keeps
// the bounds, (3) survives encoding and decoding again. Slices are heap blocks of exactly their
// size, so that the address sanitizer sees a read past any of them.
#include "tests/fuzz/frame_decoder_fuzz.h"

#include <string>

#include "absl/strings/string_view.h"
#include "cairn/v1/cache_node.pb.h"
#include "common/base/check.h"
#include "common/wire/frame_decoder.h"
#include "common/wire/frame_encoder.h"
#include "common/wire/limits.h"
#include "common/wire/payload_slice.h"
#include "tests/common/wire/frame_samples.h"

namespace cairn::testing {
namespace {

std::string PayloadOf(const ReceivedFrame& frame) {
  SliceCursor cursor = frame.payload();
  std::string payload(cursor.remaining(), '\0');
  cursor.Copy(reinterpret_cast<uint8_t*>(payload.data()), payload.size());
  return payload;
}

void CheckBounds(const ReceivedFrame& frame) {
  uint64_t bytes = 0;
  for (const PieceHeader& piece : frame.header().pieces) bytes += piece.length;
  CAIRN_CHECK(bytes == frame.payload().remaining());
  CAIRN_CHECK(bytes <= kFramePayloadBytesMax);
  CAIRN_CHECK(frame.header().pieces.size() <= kPiecesPerFrameMax);
}

template <typename Message>
void CheckGeneratedAgrees(absl::string_view bytes, const ReceivedFrame& frame) {
  Message message;
  CAIRN_CHECK(message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
  CAIRN_CHECK(HeaderOf(message) == frame.header());
  CAIRN_CHECK(message.payload() == PayloadOf(frame));
}

void CheckSurvives(FrameKind kind, const ReceivedFrame& frame) {
  // An encoding in canonical form may be longer than what came in (say, unpacked to packed
  // digests).
  if (FrameHeaderBytes(kind, frame.header()) > kFrameHeaderBytesMax) return;
  const std::string payload = PayloadOf(frame);
  const grpc::Slice slice =
      BorrowSlice({reinterpret_cast<const uint8_t*>(payload.data()), payload.size()}, nullptr);
  const auto again =
      DecodeFrame(kind, EncodeFrame(kind, frame.header(), absl::MakeConstSpan(&slice, 1)));
  CAIRN_CHECK_OK(again.status());
  CAIRN_CHECK(again->header() == frame.header());
  CAIRN_CHECK(PayloadOf(*again) == payload);
}

void RunOne(FrameKind kind, uint64_t cut_seed, absl::string_view bytes) {
  Random random(cut_seed);
  const absl::StatusOr<ReceivedFrame> frame = DecodeFrame(kind, Scatter(bytes, random));
  if (!frame.ok()) {
    CAIRN_CHECK(absl::IsInvalidArgument(frame.status()));
    return;
  }
  CheckBounds(*frame);
  if (kind == FrameKind::kWriteRequest) {
    CheckGeneratedAgrees<v1::WriteRequest>(bytes, *frame);
  } else {
    CheckGeneratedAgrees<v1::GetResponse>(bytes, *frame);
  }
  CheckSurvives(kind, *frame);
}

}  // namespace
}  // namespace cairn::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using cairn::FrameKind;
  using cairn::testing::kFuzzPrefixBytes;
  if (size < kFuzzPrefixBytes) return 0;
  const FrameKind kind = (data[0] & 1) == 0 ? FrameKind::kWriteRequest : FrameKind::kGetResponse;
  const uint64_t cut_seed = static_cast<uint64_t>(data[1]) << 8 | data[2];
  cairn::testing::RunOne(
      kind, cut_seed,
      {reinterpret_cast<const char*>(data) + kFuzzPrefixBytes, size - kFuzzPrefixBytes});
  return 0;
}
