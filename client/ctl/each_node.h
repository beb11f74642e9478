// AskEachNode: one call to each of several nodes, for what must reach all of them.
#pragma once

#include <nlohmann/json.hpp>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cpp/cache_node_client.h"
#include "client/ctl/command.h"

namespace cairn::ctl {

// --node with a list, in place of the common one.
FlagSpec NodeListFlag();

// Asks each node of --node, also when another failed, and prints what they answered: of one node
// its answer, of several a list. Not OK, naming the nodes, when any did not do it.
absl::Status AskEachNode(
    const CommandLine& line, const Streams& streams,
    absl::FunctionRef<absl::StatusOr<nlohmann::ordered_json>(CacheNodeClient&)> ask);

}  // namespace cairn::ctl
