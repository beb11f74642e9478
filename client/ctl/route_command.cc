// cairnctl route: where a router would send a prompt, and why.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cpp/router_client.h"
#include "client/ctl/command.h"
#include "client/ctl/inputs.h"
#include "client/ctl/place_text.h"
#include "client/ctl/usage_error.h"
#include "common/rpc/labels.h"
#include "common/wire/route_limits.h"

namespace cairn::ctl {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> ListOf(const CommandLine& line, absl::string_view flag) {
  if (line.Get(flag).empty()) return {};
  return absl::StrSplit(line.Get(flag), ',');
}

absl::StatusOr<std::vector<Label>> LabelsOf(const CommandLine& line, absl::string_view flag) {
  absl::StatusOr<std::vector<Label>> labels = LabelsFromText(ListOf(line, flag));
  if (!labels.ok()) {
    return UsageError(absl::StrCat("--", flag, ": ", labels.status().message()));
  }
  return labels;
}

absl::StatusOr<RouteOptions> ReadOptions(const CommandLine& line) {
  RouteOptions options;
  options.policy = line.Get("policy");
  options.session_id = line.Get("session");
  options.excluded_workers = ListOf(line, "exclude");
  absl::StatusOr<std::vector<Label>> required = LabelsOf(line, "require");
  if (!required.ok()) return required.status();
  options.required_labels = *std::move(required);
  const absl::StatusOr<std::vector<Label>> preferred = LabelsOf(line, "prefer");
  if (!preferred.ok()) return preferred.status();
  double seconds = 0;
  if (!absl::SimpleAtod(line.Get("prefer-seconds"), &seconds) || !(seconds > 0) ||
      seconds > kPreferredLabelSecondsMax) {
    return UsageError(absl::StrCat("--prefer-seconds: '", line.Get("prefer-seconds"),
                                   "' is no number above 0 and up to ", kPreferredLabelSecondsMax));
  }
  for (const Label& label : *preferred) options.preferred_labels.emplace_back(label, seconds);
  const absl::StatusOr<uint32_t> deadline_ms =
      ParseNumber(line, "deadline-ms", kRouteDeadlineMsMax);
  if (!deadline_ms.ok()) return deadline_ms.status();
  options.deadline = absl::Milliseconds(*deadline_ms);
  const absl::StatusOr<uint32_t> output_tokens =
      ParseNumber(line, "output-tokens", kPromptTokensMax);
  if (!output_tokens.ok()) return output_tokens.status();
  options.output_tokens = *output_tokens;
  return options;
}

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

Json JsonOf(const RouteAnswer& answer) {
  Json replicas = Json::array();
  for (const RoutedReplica& replica : answer.replicas) replicas.push_back(JsonOf(replica));
  return {{"policy", answer.policy},
          {"score_unit", answer.score_unit},
          {"degraded", answer.degraded},
          {"deadline_at_risk", answer.deadline_at_risk},
          {"replicas", std::move(replicas)}};
}

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

void PrintTable(const RouteAnswer& answer, std::ostream* out) {
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

absl::Status Run(const CommandLine& line, const Streams& streams) {
  const absl::StatusOr<NamespaceHandle> handle = ReadHandle(line);
  if (!handle.ok()) return handle.status();
  const absl::StatusOr<PromptInput> input = ReadPrompt(line, streams);
  if (!input.ok()) return input.status();
  const absl::StatusOr<RouteOptions> options = ReadOptions(line);
  if (!options.ok()) return options.status();
  const absl::StatusOr<std::unique_ptr<ClientSecurity>> security =
      OpenSecurity(line, TenantUse::kRead);
  if (!security.ok()) return security.status();
  SystemClientParts parts;
  RouterClientOptions client_options;
  client_options.target = line.Get("router");
  client_options.channel.tls_name = line.Get("tls-name");
  client_options.credentials = (*security)->credentials();
  client_options.metadata = (*security)->metadata();
  RouterClient router(client_options, parts.parts());
  const absl::StatusOr<Prompt> prompt =
      Prompt::Make(*parts.parts().hasher, *handle, input->Regions(), input->extras);
  if (!prompt.ok()) return prompt.status();
  const absl::StatusOr<RouteAnswer> answer = router.Route(*handle, *prompt, *options);
  if (!answer.ok()) return answer.status();
  // Nobody serves it: what was booked would be load until it expires.
  const absl::Status ended = router.ReportOutcome({.booking = answer->booking}).status();
  if (!ended.ok()) return ended;
  if (line.Get("output") != "text") return Print(line, JsonOf(*answer), streams.out);
  PrintTable(*answer, streams.out);
  return absl::OkStatus();
}

}  // namespace

Command RouteCommand() {
  std::vector<FlagSpec> flags = {
      {"router", "HOST:PORT", "127.0.0.1:7080", "the router to ask"},
      NamespaceFlag(),
  };
  for (const FlagSpec& flag : PromptFlags()) flags.push_back(flag);
  for (const FlagSpec& flag : std::vector<FlagSpec>{
           {"policy", "NAME", "",
            "the policy that ranks (`cairn-router --help` lists them); else the router's own"},
           {"session", "TEXT", "",
            "what the prompts of one conversation share; where this one goes is remembered as of "
            "any request"},
           {"require", "LIST", "", "labels that a replica must have, as in zone=a,gpu=h200"},
           {"prefer", "LIST", "", "labels that a replica should have, as in zone=a"},
           {"prefer-seconds", "S", "1", "as if its queue were so much longer without each of them"},
           {"exclude", "LIST", "", "addresses of workers that are not to be answered"},
           {"deadline-ms", "N", "0",
            "time until the first token is wanted; orders, refuses nobody; 0: whenever"},
           {"output-tokens", "N", "0", "tokens that the answer may take; 0: not known"}}) {
    flags.push_back(flag);
  }
  return {.name = "route",
          .summary = "says where a router would send a prompt, and why; books nothing that lasts",
          .flags = WithCommonFlags(flags, /*asks_node=*/false),
          .run = Run};
}

}  // namespace cairn::ctl
