#include "tests/sim/invariants/no_hole_counted.h"

#include <google/protobuf/message.h>

#include "absl/strings/str_cat.h"

namespace cairn::sim {

using google::protobuf::DynamicCastToGenerated;

void NoHoleCounted::OnNodeCall(const SeenCall& call) {
  if (!call.status.ok()) return;
  if (const auto* lookup = DynamicCastToGenerated<v1::LookupResponse>(&call.response)) {
    CheckLookup(call.server, *lookup);
  } else if (const auto* reserve = DynamicCastToGenerated<v1::ReserveResponse>(&call.response)) {
    CheckReserve(call.server, *reserve);
  }
}

void NoHoleCounted::CheckLookup(const Life& node, const v1::LookupResponse& response) const {
  uint32_t leased = 0;
  for (const v1::PromptResult& result : response.results()) {
    uint32_t from_start = 0;
    for (const v1::BlockRun& run : result.runs()) {
      const bool there =
          run.state() == v1::BLOCK_STATE_DEVICE || run.state() == v1::BLOCK_STATE_HOST ||
          run.state() == v1::BLOCK_STATE_DISK || run.state() == v1::BLOCK_STATE_NOT_LEASED;
      if (!there) break;
      from_start += run.count();
    }
    leased += result.blocks_leased();
    if (result.blocks_present() == from_start && result.blocks_leased() <= from_start) continue;
    Violated(absl::StrCat(NodeName(node), " counts ", result.blocks_present(), " present and ",
                          result.blocks_leased(), " leased blocks where ", from_start,
                          " are there from the start"));
  }
  if ((leased > 0) == !response.lease().empty()) return;
  Violated(absl::StrCat(NodeName(node), " answers a lease of ", response.lease().size(),
                        " bytes over ", leased, " blocks"));
}

void NoHoleCounted::CheckReserve(const Life& node, const v1::ReserveResponse& response) const {
  bool refused = false;
  bool any = false;
  for (const v1::ReserveAnswer& answer : response.answers()) {
    if (refused && answer.outcome() != v1::RESERVE_OUTCOME_UNSPECIFIED) {
      Violated(absl::StrCat(NodeName(node), " answers ", v1::ReserveOutcome_Name(answer.outcome()),
                            " behind a block that it refused"));
    }
    any = any || answer.outcome() == v1::RESERVE_OUTCOME_RESERVED;
    refused = refused || (answer.outcome() != v1::RESERVE_OUTCOME_RESERVED &&
                          answer.outcome() != v1::RESERVE_OUTCOME_PRESENT &&
                          answer.outcome() != v1::RESERVE_OUTCOME_IN_PROGRESS);
  }
  if (any == response.token().empty()) {
    Violated(absl::StrCat(NodeName(node), " reserved ", any ? "blocks" : "nothing",
                          " and answered a token of ", response.token().size(), " bytes"));
  }
}

void NoHoleCounted::OnRouterCall(const SeenCall& call) {
  const auto* request = DynamicCastToGenerated<v1::RouteRequest>(&call.request);
  if (request == nullptr || !call.status.ok()) return;
  const uint64_t block_tokens =
      book().FindNamespace(*Fingerprint::FromBytes(request->fingerprint()))->block_tokens();
  const uint64_t blocks = request->prompt().keys().size() / kKeyBytes;
  for (const v1::RankedReplica& replica :
       DynamicCastToGenerated<v1::RouteResponse>(&call.response)->replicas()) {
    uint64_t tokens = replica.coming_tokens();
    for (const v1::TierTokens& tier : replica.matched()) tokens += tier.tokens();
    if (tokens % block_tokens == 0 && tokens <= blocks * block_tokens) continue;
    Violated(absl::StrCat("the router matches ", tokens, " tokens at ", replica.node_id(), " of ",
                          blocks, " blocks of ", block_tokens));
  }
}

}  // namespace cairn::sim
