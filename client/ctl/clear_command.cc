// cairnctl clear: removes every block of one scope.
#include <nlohmann/json.hpp>

#include "client/ctl/command.h"
#include "client/ctl/inputs.h"

namespace cairn::ctl {
namespace {

absl::Status Run(const CommandLine& line, const Streams& streams) {
  const absl::StatusOr<NamespaceHandle> handle = ReadHandle(line);
  if (!handle.ok()) return handle.status();
  const absl::StatusOr<Scope> scope = ReadScope(line);
  if (!scope.ok()) return scope.status();
  NodeSession node(line);
  const absl::StatusOr<v1::ClearScopeResponse> cleared =
      node->ClearScope(handle->fingerprint(), *scope);
  if (!cleared.ok()) return cleared.status();
  return Print(line,
               {{"blocks_removed", cleared->blocks()}, {"pinned_bytes", cleared->pinned_bytes()}},
               streams.out);
}

}  // namespace

Command ClearCommand() {
  std::vector<FlagSpec> flags = {NamespaceFlag()};
  for (const FlagSpec& flag : ScopeFlags()) flags.push_back(flag);
  return {.name = "clear",
          .summary = "removes every block of one scope of a namespace",
          .flags = WithCommonFlags(flags, /*asks_node=*/true),
          .run = Run};
}

}  // namespace cairn::ctl
