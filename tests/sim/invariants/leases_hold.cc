#include "tests/sim/invariants/leases_hold.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/wire/frame_decoder.h"

namespace cairn::sim {

const Truth::Lease* LeasesHold::FindCertain(const Life& node, const std::string& tenant,
                                            const std::string& lease) const {
  const Truth::Lease* found = truth().FindLease(node, lease);
  if (found == nullptr || found->doubtful || found->tenant != tenant) return nullptr;
  const std::vector<bool>& ended = found->reader_ended;
  if (std::find(ended.begin(), ended.end(), false) == ended.end()) return nullptr;
  const SimNode* const server = fleet().node(node.place);
  CAIRN_CHECK(server != nullptr && server->life() == node);
  return server->guarded_now() < found->certain_until ? found : nullptr;
}

void LeasesHold::OnFrameSent(const SeenFrame& frame) {
  const Truth::Lease* lease = FindCertain(frame.node, frame.caller.tenant, frame.lease);
  if (lease == nullptr) return;
  const absl::StatusOr<ReceivedFrame> decoded = DecodeFrame(FrameKind::kGetResponse, frame.frame);
  CAIRN_CHECK_OK(decoded.status());
  for (const PieceHeader& piece : decoded->header().pieces) {
    const BlockKey& key = frame.keys.at(piece.block);
    if (piece.length > 0 || !lease->keys.contains(key)) continue;
    Violated(absl::StrCat(NodeName(frame.node), " says of block ", ShortHex(key.view()),
                          " that it is ",
                          v1::BlockState_Name(static_cast<v1::BlockState>(piece.state)),
                          ", and lease ", ShortHex(frame.lease), " holds it"));
  }
}

void LeasesHold::OnGetEnded(const SeenGetEnd& end) {
  if (end.status.ok() || FindCertain(end.node, end.caller.tenant, end.lease) == nullptr) return;
  Violated(absl::StrCat(NodeName(end.node), " refuses a get by lease ", ShortHex(end.lease),
                        ", which cannot be over: ", end.status.ToString()));
}

}  // namespace cairn::sim
