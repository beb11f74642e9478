#include "tests/sim/invariants/no_crossing_of_tenants.h"

#include <google/protobuf/message.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/rpc/id_conversion.h"

namespace cairn::sim {
namespace {

uint64_t MatchedTokens(const google::protobuf::RepeatedPtrField<v1::TierTokens>& tiers) {
  uint64_t tokens = 0;
  for (const v1::TierTokens& tier : tiers) tokens += tier.tokens();
  return tokens;
}

}  // namespace

bool NoCrossingOfTenants::Readable(const BlockKey& key, const std::string& tenant) const {
  const KeyFacts* facts = book().Find(key);
  return facts == nullptr || facts->scope.tenant == tenant || facts->scope.tenant == kPublicTenant;
}

void NoCrossingOfTenants::OnShown(const Shown& shown) {
  if (Readable(shown.key, shown.tenant)) return;
  Violated(
      absl::StrCat(Describe(shown), ", but it is ", book().Find(shown.key)->scope.tenant, "'s"));
}

// Not even that it was there.
void NoCrossingOfTenants::OnSaid(const Shown& said, v1::BlockState state) {
  if (Readable(said.key, said.tenant) || state == v1::BLOCK_STATE_NEVER_SEEN ||
      state == v1::BLOCK_STATE_NAMESPACE_UNKNOWN) {
    return;
  }
  Violated(absl::StrCat(NodeName(said.node), " says to ", said.tenant, " that block ",
                        ShortHex(said.key.view()), " of ", book().Find(said.key)->scope.tenant,
                        " is ", v1::BlockState_Name(state)));
}

size_t NoCrossingOfTenants::ReadablePrefix(const std::string& bytes,
                                           const std::string& tenant) const {
  const std::vector<BlockKey> keys = *KeysFromProto(bytes, "keys", SIZE_MAX);
  const auto foreign = std::find_if(keys.begin(), keys.end(),
                                    [&](const BlockKey& key) { return !Readable(key, tenant); });
  return static_cast<size_t>(foreign - keys.begin());
}

void NoCrossingOfTenants::OnRouterCall(const SeenCall& call) {
  if (!call.status.ok()) return;
  using google::protobuf::DynamicCastToGenerated;
  const std::string& tenant = call.caller.tenant;
  const auto check = [&](const std::string& fingerprint, const std::string& keys, uint64_t tokens) {
    const NamespaceHandle* name_space = book().FindNamespace(*Fingerprint::FromBytes(fingerprint));
    const uint64_t readable = ReadablePrefix(keys, tenant) * name_space->block_tokens();
    if (tokens <= readable) return;
    Violated(absl::StrCat("the router says to ", tenant, " that ", tokens,
                          " tokens of a prompt are held, of which it may read ", readable));
  };
  if (const auto* route = DynamicCastToGenerated<v1::RouteRequest>(&call.request)) {
    const auto* answer = DynamicCastToGenerated<v1::RouteResponse>(&call.response);
    for (const v1::RankedReplica& replica : answer->replicas()) {
      check(route->fingerprint(), route->prompt().keys(), MatchedTokens(replica.matched()));
    }
  } else if (const auto* lookup = DynamicCastToGenerated<v1::LookupPrefixRequest>(&call.request)) {
    const auto* answer = DynamicCastToGenerated<v1::LookupPrefixResponse>(&call.response);
    for (const v1::HolderMatch& match : answer->holders()) {
      check(lookup->fingerprint(), lookup->prompt().keys(), MatchedTokens(match.matched()));
    }
  }
}

}  // namespace cairn::sim
