#include "client/ctl/route_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/ctl/place_text.h"

namespace cairn::ctl {

using Json = nlohmann::ordered_json;

namespace {

Json JsonOf(const RoutedReplica& replica) {
  Json matched = Json::object();
  for (const TierTokensMatched& tier : replica.matched) {
    matched[v1::Tier_Name(tier.tier)] = tier.tokens;
  }
  const v1::RouteTerms& terms = replica.terms;
  return {{"worker", replica.worker_address},
          {"node", replica.node_id},
          {"reason", v1::RouteReason_Name(replica.reason)},
          {"holder_state", v1::HolderState_Name(replica.holder_state)},
          {"matched_tokens", std::move(matched)},
          {"coming_tokens", replica.coming_tokens},
          {"remote_tokens", replica.remote_tokens},
          {"remote_node", replica.remote_node_id},
          {"score", replica.score},
          {"queued_seconds", replica.queued_seconds},
          {"compute_seconds", terms.compute_seconds()},
          {"fetch_seconds", terms.fetch_seconds()},
          {"expected_ttft_seconds", terms.expected_ttft_seconds()},
          {"ramp_seconds", terms.ramp_seconds()},
          {"label_seconds", terms.label_seconds()},
          {"session_seconds", terms.session_seconds()},
          {"trust", terms.trust()}};
}

}  // namespace

Json RouteJson(const RouteAnswer& answer) {
  Json replicas = Json::array();
  for (const RoutedReplica& replica : answer.replicas) replicas.push_back(JsonOf(replica));
  return {{"policy", answer.policy},
          {"score_unit", answer.score_unit},
          {"degraded", answer.degraded},
          {"deadline_at_risk", answer.deadline_at_risk},
          {"replicas", std::move(replicas)}};
}

namespace {

// What put it before the others, in a sentence.
absl::string_view WhyFirst(v1::RouteReason reason) {
  switch (reason) {
    case v1::ROUTE_REASON_PREFIX:
      return "by its score, with a part of the prompt that it can read";
    case v1::ROUTE_REASON_RENDEZVOUS:
      return "no replica has enough of the prompt, so the hash of its first blocks chose among the "
             "least queued; the others stand by score";
    case v1::ROUTE_REASON_LOAD:
      return "by its score, with nothing of the prompt";
    case v1::ROUTE_REASON_HOLDER_OUT:
      return "the nodes of all replicas are out or draining; by score";
    case v1::ROUTE_REASON_SESSION:
      return "the session's last prompt went there, and that decided";
    default:
      return "the router gave no reason that this program knows";
  }
}

// One of less score stands behind it, which only a deadline does to those that go by score.
bool ByDeadline(const RouteAnswer& answer) {
  const RoutedReplica& first = answer.replicas.front();
  if (first.reason != v1::ROUTE_REASON_PREFIX && first.reason != v1::ROUTE_REASON_LOAD)
    return false;
  return std::any_of(answer.replicas.begin(), answer.replicas.end(),
                     [&first](const RoutedReplica& one) {
                       return one.reason != v1::ROUTE_REASON_HOLDER_OUT && one.score < first.score;
                     });
}

std::string MatchedText(const RoutedReplica& replica) {
  std::vector<std::string> tiers;
  for (const TierTokensMatched& tier : replica.matched) {
    const std::string name = v1::Tier_Name(tier.tier);
    tiers.push_back(
        absl::StrCat(tier.tokens, " ", absl::AsciiStrToLower(absl::StripPrefix(name, "TIER_"))));
  }
  return tiers.empty() ? "0" : absl::StrJoin(tiers, "+");
}

void PrintRow(const RoutedReplica& replica, std::ostream* out) {
  const std::string reason = v1::RouteReason_Name(replica.reason);
  const v1::RouteTerms& terms = replica.terms;
  *out << absl::StrFormat("%-24s %-12s %-10s %12.4f %16s %8d %8d %9.3f %9.3f %9.3f %9.3f  %s\n",
                          PrintableName(replica.worker_address), PrintableName(replica.node_id),
                          absl::StripPrefix(reason, "ROUTE_REASON_"), replica.score,
                          MatchedText(replica), replica.coming_tokens, replica.remote_tokens,
                          replica.queued_seconds, terms.compute_seconds(), terms.fetch_seconds(),
                          terms.expected_ttft_seconds(), RareTerms(JsonOf(replica)));
}

}  // namespace

void PrintRoute(const RouteAnswer& answer, std::ostream* out) {
  *out << "policy " << PrintableName(answer.policy) << ", score in "
       << PrintableName(answer.score_unit) << ": less is better\n\n"
       << absl::StrFormat("%-24s %-12s %-10s %12s %16s %8s %8s %9s %9s %9s %9s  %s\n", "worker",
                          "node", "reason", "score", "matched", "coming", "remote", "queued s",
                          "compute s", "fetch s", "ttft s", "also");
  bool any_in = false;
  for (const RoutedReplica& replica : answer.replicas) {
    PrintRow(replica, out);
    any_in = any_in || replica.holder_state != v1::HOLDER_STATE_OUT;
  }
  *out << "\nfirst: "
       << (ByDeadline(answer) ? "for the deadline, which those of less score are expected to miss"
                              : WhyFirst(answer.replicas.front().reason))
       << "\n";
  if (answer.degraded) {
    *out << "degraded: "
         << (any_in ? "no node has this namespace (`cairnctl register` binds it)" : "no node is in")
         << ", so nothing is matched\n";
  }
  if (answer.deadline_at_risk) {
    *out << "deadline at risk: no replica is expected to make it; the least ttft comes first\n";
  }
}

}  // namespace cairn::ctl
