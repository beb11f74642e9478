// cairnctl register: binds a name to a namespace on the node.
#include <nlohmann/json.hpp>

#include "client/ctl/command.h"
#include "client/ctl/inputs.h"
#include "common/base/hex.h"

namespace cairn::ctl {
namespace {

absl::Status Run(const CommandLine& line, const Streams& streams) {
  const absl::StatusOr<Namespace> fields = ReadNamespace(line);
  if (!fields.ok()) return fields.status();
  NodeSession node(line);
  if (!node.status().ok()) return node.status();
  const absl::StatusOr<NamespaceHandle> handle = node->RegisterNamespace(line.Get("name"), *fields);
  if (!handle.ok()) return handle.status();
  return Print(line,
               {{"name", handle->name()},
                {"tenant", handle->tenant()},
                {"fingerprint_hex", ToHex(handle->fingerprint().view())},
                {"block_tokens", handle->block_tokens()},
                {"block_bytes", handle->block_bytes()}},
               streams.out);
}

}  // namespace

Command RegisterCommand() {
  return {.name = "register",
          .summary = "binds a name to a namespace, so that its blocks can be kept",
          .flags = WithCommonFlags({{"name", "NAME", "example", "label of the namespace"},
                                    {"tenant", "NAME", "", "tenant to act for, of several"},
                                    NamespaceFlag()},
                                   /*asks_node=*/true),
          .run = Run};
}

}  // namespace cairn::ctl
