// cairnctl route: where a router would send a prompt, and why.
#include <memory>
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
#include "client/ctl/route_text.h"
#include "client/ctl/usage_error.h"
#include "common/rpc/labels.h"
#include "common/wire/route_limits.h"

namespace cairn::ctl {
namespace {

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
  if (line.Get("output") != "text") return Print(line, RouteJson(*answer), streams.out);
  PrintRoute(*answer, streams.out);
  return absl::OkStatus();
}

}  // namespace

Command RouteCommand() {
  std::vector<FlagSpec> flags = {
      {"router", "HOST:PORT,...", "127.0.0.1:7080", "the router to ask, or several alike"},
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
