#include "tests/sim/invariants/index_equals_listing.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace cairn::sim {

bool IndexEqualsListing::Comparable(const SimRouter& router, size_t place) const {
  const SimNode* node = fleet().node(place);
  return node != nullptr && node->FeedsAreIdle() && router.UpToDate(place) &&
         router.core()->StateOf(static_cast<router::HolderIndex>(place)) ==
             router::HolderState::kExact;
}

void IndexEqualsListing::OnQuiet() {
  const uint64_t before = comparisons_;
  Compare();
  if (comparisons_ - before == fleet().node_count()) return;
  Violated(absl::StrCat("all is quiet, and only ", comparisons_ - before, " of ",
                        fleet().node_count(), " nodes are EXACT and up to date at the router"));
}

void IndexEqualsListing::Compare() {
  const SimRouter* router = fleet().router();
  if (router == nullptr) return;
  std::vector<size_t> places;
  for (size_t place = 0; place < fleet().node_count(); ++place) {
    if (Comparable(*router, place)) places.push_back(place);
  }
  if (places.empty()) return;
  comparisons_ += places.size();
  std::map<Owner, std::vector<BlockKey>> keys;
  for (const auto& [key, facts] : book().keys()) {
    keys[{facts.name_space, facts.scope.tenant}].push_back(key);
  }
  for (const auto& [owner, of_owner] : keys) CompareKeys(*router, places, owner, of_owner);
  for (const router::ReplicaStatus& replica : router->core()->ListReplicas()) {
    for (const size_t place : places) {
      const SimNode* node = fleet().node(place);
      if (replica.node_id != node->node_id()) continue;
      const uint64_t blocks = node->store()->Status().blocks;
      if (replica.blocks == blocks) continue;
      Violated(absl::StrCat("the router counts ", replica.blocks, " blocks at ",
                            NodeName(node->life()), ", which has ", blocks));
    }
  }
}

void IndexEqualsListing::CompareKeys(const SimRouter& router, const std::vector<size_t>& places,
                                     const Owner& owner, const std::vector<BlockKey>& keys) {
  const auto& [name_space, tenant] = owner;
  const Fingerprint& fingerprint = name_space->fingerprint();
  node::LookupQuery query;
  query.counted = false;
  for (const BlockKey& key : keys) query.prompts.push_back({.keys = {key}});
  std::vector<std::vector<bool>> there;
  for (const size_t place : places) {
    const node::LookupAnswer answer =
        fleet().node(place)->store()->Lookup(tenant, fingerprint, query);
    std::vector<bool>& of_node = there.emplace_back();
    for (const node::PromptAnswer& prompt : answer.prompts) of_node.push_back(prompt.present > 0);
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    const router::LookupAnswer answer =
        router.core()->LookupPrefix(tenant, fingerprint, {&keys[i], 1});
    for (size_t j = 0; j < places.size(); ++j) {
      const SimNode* node = fleet().node(places[j]);
      const bool said = std::any_of(
          answer.holders.begin(), answer.holders.end(),
          [node](const router::HolderMatch& holder) { return holder.node_id == node->node_id(); });
      if (said == there[j][i]) continue;
      Violated(absl::StrCat("the router says that ", NodeName(node->life()),
                            said ? " has" : " has not", " block ", ShortHex(keys[i].view()), " of ",
                            tenant, ", and the node that it ", there[j][i] ? "has" : "has not"));
    }
  }
}

}  // namespace cairn::sim
