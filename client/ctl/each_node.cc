#include "client/ctl/each_node.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/ctl/inputs.h"
#include "client/ctl/usage_error.h"

namespace cairn::ctl {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kNodesMax = 1024;

absl::StatusOr<std::vector<std::string>> ReadNodes(const CommandLine& line) {
  const std::string& list = line.Get("node");
  std::vector<std::string> nodes = absl::StrSplit(list, ',');
  if (nodes.size() > kNodesMax) {
    return UsageError(absl::StrCat("--node: ", nodes.size(), " nodes; at most ", kNodesMax));
  }
  for (const std::string& node : nodes) {
    if (node.empty()) return UsageError(absl::StrCat("--node: '", list, "' names an empty node"));
  }
  return nodes;
}

}  // namespace

FlagSpec NodeListFlag() {
  return {"node", "HOST:PORT,...", "127.0.0.1:7070", "the cache nodes to ask, comma-separated"};
}

absl::Status AskEachNode(const CommandLine& line, const Streams& streams,
                         absl::FunctionRef<absl::StatusOr<Json>(CacheNodeClient&)> ask) {
  const absl::StatusOr<std::vector<std::string>> nodes = ReadNodes(line);
  if (!nodes.ok()) return nodes.status();
  Json answers = Json::array();
  Json failed = Json::array();
  std::vector<std::string> reasons;
  absl::Status first = absl::OkStatus();
  for (const std::string& node : *nodes) {
    NodeSession session(line, node);
    if (!session.status().ok()) return session.status();
    const absl::StatusOr<Json> answer = ask(session.client());
    Json one = {{"node", node}};
    if (answer.ok()) {
      one.update(*answer);
    } else {
      one["error"] = TextOf(answer.status());
      failed.push_back(node);
      reasons.push_back(absl::StrCat(node, " (", TextOf(answer.status()), ")"));
      first.Update(answer.status());
    }
    answers.push_back(std::move(one));
  }
  if (nodes->size() == 1) {
    if (!first.ok()) return first;
    answers[0].erase("node");
    return Print(line, answers[0], streams.out);
  }
  const absl::Status printed =
      Print(line, {{"nodes", std::move(answers)}, {"failed_nodes", failed}}, streams.out);
  if (!printed.ok() || first.ok()) return printed;
  return absl::Status(first.code(),
                      absl::StrCat(reasons.size(), " of ", nodes->size(),
                                   " nodes did not do it, and may still answer what was to go: ",
                                   absl::StrJoin(reasons, ", "),
                                   ". Run it again for them when they can be reached."));
}

}  // namespace cairn::ctl
