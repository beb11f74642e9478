// ExplainMiss: why a prompt misses, asked of a router's nodes or of those of --node, and printed.
#pragma once

#include <ostream>

#include "absl/status/status.h"
#include "client/cpp/namespace_handle.h"
#include "client/cpp/prompt.h"
#include "client/ctl/command_line.h"

namespace cairn::ctl {

// Where --node is not given, asks the router of --router which nodes there are and where the prompt
// would go, which books nothing that lasts. Nodes that do not answer are listed with why. Not OK
// when the router does not answer, or the prompt is wrong.
absl::Status ExplainMiss(const CommandLine& line, const NamespaceHandle& handle,
                         const Prompt& prompt, std::ostream* out);

}  // namespace cairn::ctl
