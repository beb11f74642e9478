#include "tests/sim/invariants/matches_were_there.h"

#include <google/protobuf/message.h>

#include "absl/strings/str_cat.h"
#include "common/rpc/id_conversion.h"

namespace cairn::sim {
namespace {

uint64_t TokensOf(const google::protobuf::RepeatedPtrField<v1::TierTokens>& tiers) {
  uint64_t tokens = 0;
  for (const v1::TierTokens& tier : tiers) tokens += tier.tokens();
  return tokens;
}

}  // namespace

const SimNode* MatchesWereThere::Followed(const std::string& node_id) const {
  const SimRouter* router = fleet().router();
  if (router == nullptr) return nullptr;
  for (const router::ReplicaStatus& replica : router->core()->ListReplicas()) {
    if (replica.node_id != node_id) continue;
    for (size_t place = 0; place < fleet().node_count(); ++place) {
      const SimNode* node = fleet().node(place);
      if (node != nullptr && replica.incarnation == node->incarnation()) return node;
    }
  }
  return nullptr;
}

void MatchesWereThere::Check(const SeenCall& call, const std::string& fingerprint,
                             const std::string& bytes, const Match& match) const {
  const SimNode* node = match.fed_tokens == 0 ? nullptr : Followed(match.node_id);
  if (node == nullptr) return;
  const Fingerprint name_space = *Fingerprint::FromBytes(fingerprint);
  const std::vector<BlockKey> keys = *KeysFromProto(bytes, "keys", SIZE_MAX);
  const uint64_t block_tokens = book().FindNamespace(name_space)->block_tokens();
  const uint64_t blocks = (match.fed_tokens + match.coming_tokens) / block_tokens;
  uint64_t were_there = 0;
  for (size_t i = 0; i < blocks && i < keys.size(); ++i) {
    const Truth::BlockName own{name_space, call.caller.tenant, keys[i]};
    const Truth::BlockName shared{name_space, kPublicTenant, keys[i]};
    for (const Truth::BlockName& name : {own, shared}) {
      if (!truth().MayBeThere(node->life(), name) && !truth().WasRemoved(node->life(), name)) {
        continue;
      }
      ++were_there;
      break;
    }
  }
  if (match.fed_tokens <= were_there * block_tokens) return;
  Violated(absl::StrCat("the router says that ", match.fed_tokens / block_tokens, " blocks of ",
                        call.caller.tenant, "'s prompt from ", ShortHex(bytes), " on are at ",
                        NodeName(node->life()), ", which had ", were_there, " of them"));
}

void MatchesWereThere::OnRouterCall(const SeenCall& call) {
  if (!call.status.ok()) return;
  using google::protobuf::DynamicCastToGenerated;
  if (const auto* route = DynamicCastToGenerated<v1::RouteRequest>(&call.request)) {
    // What is answered again is as old as the first answer.
    if (!asked_.insert(route->request_id()).second) return;
    for (const v1::RankedReplica& replica :
         DynamicCastToGenerated<v1::RouteResponse>(&call.response)->replicas()) {
      Check(call, route->fingerprint(), route->prompt().keys(),
            {replica.node_id(), TokensOf(replica.matched()), replica.coming_tokens()});
    }
  } else if (const auto* lookup = DynamicCastToGenerated<v1::LookupPrefixRequest>(&call.request)) {
    for (const v1::HolderMatch& holder :
         DynamicCastToGenerated<v1::LookupPrefixResponse>(&call.response)->holders()) {
      Check(call, lookup->fingerprint(), lookup->prompt().keys(),
            {holder.node_id(), TokensOf(holder.matched()), 0});
    }
  }
}

}  // namespace cairn::sim
