#include "tests/sim/invariants/no_wrong_bytes.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/synthetic_payload.h"
#include "common/base/check.h"
#include "common/wire/frame_decoder.h"

namespace cairn::sim {

void NoWrongBytes::OnFrameSent(const SeenFrame& frame) {
  const PayloadMap& map = book().FindNamespace(frame.fingerprint)->payload_map();
  const absl::StatusOr<ReceivedFrame> decoded = DecodeFrame(FrameKind::kGetResponse, frame.frame);
  CAIRN_CHECK_OK(decoded.status());
  SliceCursor payload = decoded->payload();
  for (const PieceHeader& piece : decoded->header().pieces) {
    std::vector<uint8_t> bytes(piece.length);
    payload.Copy(bytes.data(), bytes.size());
    const BlockKey& key = frame.keys.at(piece.block);
    if (bytes.empty() || truth().Damaged(key)) continue;
    const size_t segment_bytes = bytes.size() / piece.digests.size();
    for (uint32_t i = 0; i < piece.digests.size(); ++i) {
      const SegmentId id{piece.group, piece.slice, piece.layer + i};
      const auto segment = absl::MakeConstSpan(bytes).subspan(i * segment_bytes, segment_bytes);
      if (IsSyntheticSegment(map, key, id, segment)) continue;
      Violated(absl::StrCat(NodeName(frame.node), " hands out wrong bytes of block ",
                            ShortHex(key.view()), ", group ", id.group, ", slice ", id.slice,
                            ", layer ", id.layer));
    }
  }
}

void NoWrongBytes::OnUsed(const SeenUse& use) {
  if (IsSyntheticSegment(use.map, use.key, use.segment, use.bytes)) return;
  Violated(absl::StrCat("a worker takes wrong bytes for good: block ", ShortHex(use.key.view()),
                        ", group ", use.segment.group, ", slice ", use.segment.slice, ", layer ",
                        use.segment.layer));
}

}  // namespace cairn::sim
