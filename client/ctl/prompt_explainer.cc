#include "client/ctl/prompt_explainer.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cpp/explain/miss_verdict.h"
#include "client/cpp/router_client.h"
#include "client/ctl/inputs.h"
#include "client/ctl/place_text.h"
#include "client/ctl/route_text.h"
#include "client/ctl/usage_error.h"

namespace cairn::ctl {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kNodesMax = 1024;

// What a router said: where the nodes are, and where it would send the prompt.
struct Routed {
  std::vector<std::string> nodes;
  RouteAnswer answer;
};

absl::StatusOr<Routed> AskRouter(const CommandLine& line, const NamespaceHandle& handle,
                                 const Prompt& prompt) {
  const absl::StatusOr<std::unique_ptr<ClientSecurity>> security =
      OpenSecurity(line, TenantUse::kRead);
  if (!security.ok()) return security.status();
  SystemClientParts parts;
  RouterClientOptions options;
  options.target = line.Get("router");
  options.channel.tls_name = line.Get("tls-name");
  options.credentials = (*security)->credentials();
  options.metadata = (*security)->metadata();
  RouterClient router(options, parts.parts());
  const absl::StatusOr<ReplicaList> list = router.ListReplicas();
  if (!list.ok()) return list.status();
  Routed routed;
  for (const HolderEntry& holder : list->holders) routed.nodes.push_back(holder.address);
  absl::StatusOr<RouteAnswer> answer = router.Route(handle, prompt);
  if (!answer.ok()) return answer.status();
  routed.answer = *std::move(answer);
  // Nobody serves it: what was booked would be load until it expires.
  const absl::Status ended = router.ReportOutcome({.booking = routed.answer.booking}).status();
  if (!ended.ok()) return ended;
  return routed;
}

absl::StatusOr<std::vector<NodeExplanation>> AskNodes(const CommandLine& line,
                                                      const std::vector<std::string>& nodes,
                                                      const NamespaceHandle& handle,
                                                      const Prompt& prompt) {
  if (nodes.size() > kNodesMax) {
    return UsageError(absl::StrCat("--node: ", nodes.size(), " nodes; at most ", kNodesMax));
  }
  std::vector<NodeExplanation> explained;
  for (const std::string& address : nodes) {
    NodeSession session(line, address, TenantUse::kRead);
    if (!session.status().ok()) return session.status();
    NodeExplanation one = {.address = address, .status = absl::OkStatus(), .answer = {}};
    absl::StatusOr<v1::ExplainPromptResponse> answer = session->ExplainPrompt(handle, prompt);
    // What is wrong with the prompt is wrong at every node.
    if (absl::IsInvalidArgument(answer.status())) return answer.status();
    one.status = answer.status();
    if (answer.ok()) one.answer = *std::move(answer);
    explained.push_back(std::move(one));
  }
  return explained;
}

std::string StateName(v1::BlockState state) {
  const std::string name = v1::BlockState_Name(state);
  return std::string(absl::StripPrefix(name, "BLOCK_STATE_"));
}

Json JsonOf(const NodeExplanation& node) {
  Json one = {{"address", node.address}};
  if (!node.status.ok()) {
    one["error"] = TextOf(node.status);
    return one;
  }
  const v1::ExplainPromptResponse& answer = node.answer;
  one["node"] = answer.node_id();
  one["namespace_known"] = answer.namespace_known();
  one["blocks_total"] = answer.blocks_total();
  one["blocks_present"] = answer.blocks_present();
  one["state"] = StateName(answer.state());
  if (answer.has_removed_ms_ago()) one["removed_ms_ago"] = answer.removed_ms_ago();
  if (answer.has_divergence()) {
    const v1::Divergence& difference = answer.divergence();
    one["divergence"] = {{"position", difference.position()},
                         {"asked_token", difference.asked_token()},
                         {"held_token", difference.held_token()},
                         {"differing_tokens", difference.differing_tokens()},
                         {"candidates", difference.candidates()}};
  }
  if (answer.has_other_scope()) {
    one["other_scope"] = {{"adapter", answer.other_scope().adapter()},
                          {"adapter_differs", answer.other_scope().adapter_differs()},
                          {"salt_differs", answer.other_scope().salt_differs()}};
  }
  for (const v1::NamespaceDifference& near : answer.namespaces()) {
    one["namespaces"].push_back({{"name", near.name()}, {"difference", near.difference()}});
  }
  one["looked_at_blocks"] = answer.looked_at();
  one["partial"] = answer.partial();
  return one;
}

void PrintNodes(const std::vector<NodeExplanation>& nodes, std::ostream* out) {
  *out << absl::StrFormat("\n%-24s %-12s %9s  %s\n", "node at", "id", "held", "the next block");
  for (const NodeExplanation& node : nodes) {
    if (!node.status.ok()) {
      *out << absl::StrFormat("%-24s %-12s %9s  %s\n", node.address, "-", "-", TextOf(node.status));
      continue;
    }
    const v1::ExplainPromptResponse& answer = node.answer;
    std::string next = absl::AsciiStrToLower(StateName(answer.state()));
    if (!answer.namespace_known()) {
      next = "namespace unknown";
    } else if (answer.blocks_present() == answer.blocks_total()) {
      next = "-";
    } else if (answer.has_divergence()) {
      absl::StrAppend(&next, "; nearest held differs at token ", answer.divergence().position());
    }
    if (answer.partial()) absl::StrAppend(&next, " (not all was looked at)");
    *out << absl::StrFormat("%-24s %-12s %4d/%-4d  %s\n", node.address,
                            PrintableName(answer.node_id()), answer.blocks_present(),
                            answer.blocks_total(), next);
  }
}

}  // namespace

absl::Status ExplainMiss(const CommandLine& line, const NamespaceHandle& handle,
                         const Prompt& prompt, std::ostream* out) {
  std::vector<std::string> addresses;
  std::optional<RouteAnswer> routed;
  if (line.Given("node")) {
    addresses = absl::StrSplit(line.Get("node"), ',', absl::SkipEmpty());
  } else {
    absl::StatusOr<Routed> answer = AskRouter(line, handle, prompt);
    if (!answer.ok()) return answer.status();
    addresses = std::move(answer->nodes);
    routed = std::move(answer->answer);
  }
  const absl::StatusOr<std::vector<NodeExplanation>> nodes =
      AskNodes(line, addresses, handle, prompt);
  if (!nodes.ok()) return nodes.status();
  const uint64_t tokens = prompt.token_count();
  const MissVerdict verdict = VerdictOf(tokens, handle.block_tokens(), *nodes);
  if (line.Get("output") != "text") {
    Json json = {{"reason", MissReasonName(verdict.reason)},
                 {"text", verdict.text},
                 {"prompt_tokens", tokens},
                 {"cached_tokens", verdict.cached_tokens},
                 {"position", verdict.position},
                 {"differing_tokens", verdict.differing_tokens},
                 {"node", verdict.node},
                 {"nodes", Json::array()}};
    for (const NodeExplanation& node : *nodes) json["nodes"].push_back(JsonOf(node));
    if (routed.has_value()) json["route"] = RouteJson(*routed);
    return Print(line, json, out);
  }
  *out << MissReasonName(verdict.reason) << ": " << verdict.cached_tokens << " of " << tokens
       << " tokens are held by one node.\n"
       << verdict.text << "\n";
  PrintNodes(*nodes, out);
  if (!routed.has_value()) return absl::OkStatus();
  *out << "\nWhere it would go: ";
  PrintRoute(*routed, out);
  return absl::OkStatus();
}

}  // namespace cairn::ctl
