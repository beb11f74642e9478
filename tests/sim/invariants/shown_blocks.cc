#include "tests/sim/invariants/shown_blocks.h"

#include <google/protobuf/message.h>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/wire/frame_decoder.h"

namespace cairn::sim {
namespace {

bool IsThere(v1::BlockState state) {
  return state == v1::BLOCK_STATE_DEVICE || state == v1::BLOCK_STATE_HOST ||
         state == v1::BLOCK_STATE_DISK || state == v1::BLOCK_STATE_NOT_LEASED;
}

}  // namespace

void ShownBlocks::OnNodeCall(const SeenCall& call) {
  const auto* request = google::protobuf::DynamicCastToGenerated<v1::LookupRequest>(&call.request);
  if (request == nullptr || !call.status.ok()) return;
  if (!request->request_id().empty() &&
      !answered_.emplace(call.server, call.caller.id, request->request_id()).second) {
    return;
  }
  const auto* response =
      google::protobuf::DynamicCastToGenerated<v1::LookupResponse>(&call.response);
  const Fingerprint fingerprint = *Fingerprint::FromBytes(request->fingerprint());
  const std::vector<std::vector<BlockKey>> prompts = KeysOfLookup(book(), *request);
  for (size_t i = 0; i < prompts.size(); ++i) {
    const v1::PromptResult& result = response->results(static_cast<int>(i));
    size_t block = 0;
    for (const v1::BlockRun& run : result.runs()) {
      for (uint32_t j = 0; j < run.count(); ++j, ++block) {
        const Shown shown{call.server, call.caller.tenant, fingerprint, prompts[i].at(block),
                          "a lookup"};
        OnSaid(shown, run.state());
        // What is counted is shown, whatever its state says.
        if (IsThere(run.state()) || block < result.blocks_present()) OnShown(shown);
      }
    }
  }
}

void ShownBlocks::OnFrameSent(const SeenFrame& frame) {
  const absl::StatusOr<ReceivedFrame> decoded = DecodeFrame(FrameKind::kGetResponse, frame.frame);
  CAIRN_CHECK_OK(decoded.status());
  for (const PieceHeader& piece : decoded->header().pieces) {
    if (piece.length == 0) continue;
    OnShown(
        {frame.node, frame.caller.tenant, frame.fingerprint, frame.keys.at(piece.block), "a get"});
  }
}

std::string ShownBlocks::Describe(const Shown& shown) {
  return absl::StrCat(NodeName(shown.node), " shows block ", ShortHex(shown.key.view()), " to ",
                      shown.tenant, " by ", shown.how);
}

}  // namespace cairn::sim
