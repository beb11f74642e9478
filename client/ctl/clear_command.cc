// cairnctl clear: removes every block of one scope.
#include <nlohmann/json.hpp>

#include "client/ctl/command.h"
#include "client/ctl/each_node.h"
#include "client/ctl/inputs.h"

namespace cairn::ctl {
namespace {

using Json = nlohmann::ordered_json;

absl::Status Run(const CommandLine& line, const Streams& streams) {
  const absl::StatusOr<NamespaceHandle> handle = ReadHandle(line);
  if (!handle.ok()) return handle.status();
  const absl::StatusOr<Scope> scope = ReadScope(line);
  if (!scope.ok()) return scope.status();
  return AskEachNode(line, streams, [&](CacheNodeClient& node) -> absl::StatusOr<Json> {
    const absl::StatusOr<v1::ClearScopeResponse> cleared =
        node.ClearScope(handle->fingerprint(), *scope);
    if (!cleared.ok()) return cleared.status();
    return Json{{"blocks_removed", cleared->blocks()}, {"pinned_bytes", cleared->pinned_bytes()}};
  });
}

}  // namespace

Command ClearCommand() {
  std::vector<FlagSpec> flags = {NamespaceFlag()};
  for (const FlagSpec& flag : ScopeFlags()) flags.push_back(flag);
  flags.push_back(NodeListFlag());
  return {.name = "clear",
          .summary = "removes every block of one scope of a namespace, on each node given",
          .flags = WithCommonFlags(flags, /*asks_node=*/false),
          .run = Run};
}

}  // namespace cairn::ctl
