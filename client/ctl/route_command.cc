// cairnctl route: where a router would send a prompt, and why.
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cpp/router_client.h"
#include "client/ctl/command.h"
#include "client/ctl/inputs.h"
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
  Json replicas = Json::array();
  for (const RoutedReplica& replica : answer->replicas) replicas.push_back(JsonOf(replica));
  return Print(line,
               {{"policy", answer->policy},
                {"score_unit", answer->score_unit},
                {"degraded", answer->degraded},
                {"deadline_at_risk", answer->deadline_at_risk},
                {"replicas", std::move(replicas)}},
               streams.out);
}

}  // namespace

Command RouteCommand() {
  std::vector<FlagSpec> flags = {
      {"router", "HOST:PORT", "127.0.0.1:7080", "the router to ask"},
      NamespaceFlag(),
  };
  for (const FlagSpec& flag : PromptFlags()) flags.push_back(flag);
  for (const FlagSpec& flag : std::vector<FlagSpec>{
           {"policy", "NAME", "", "the policy that ranks; else the router's own"},
           {"session", "TEXT", "", "what the prompts of one conversation share"},
           {"require", "LIST", "", "labels that a replica must have, as in zone=a,gpu=h200"},
           {"prefer", "LIST", "", "labels that a replica should have"},
           {"prefer-seconds", "S", "1", "as if its queue were so much longer without each of them"},
           {"exclude", "LIST", "", "workers that are not to be answered"},
           {"deadline-ms", "N", "0", "time until the first token is wanted; 0: whenever"},
           {"output-tokens", "N", "0", "tokens that the answer may take; 0: not known"}}) {
    flags.push_back(flag);
  }
  return {.name = "route",
          .summary = "says where a router would send a prompt, and why; books nothing that lasts",
          .flags = WithCommonFlags(flags, /*asks_node=*/false),
          .run = Run};
}

}  // namespace cairn::ctl
