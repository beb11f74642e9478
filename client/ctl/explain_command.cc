// cairnctl explain: why a prompt misses, and where it would go.
#include <string>
#include <vector>

#include "client/ctl/command.h"
#include "client/ctl/inputs.h"
#include "client/ctl/prompt_explainer.h"

namespace cairn::ctl {
namespace {

absl::Status Run(const CommandLine& line, const Streams& streams) {
  const absl::StatusOr<NamespaceHandle> handle = ReadHandle(line);
  if (!handle.ok()) return handle.status();
  const absl::StatusOr<PromptInput> input = ReadPrompt(line, streams);
  if (!input.ok()) return input.status();
  SystemClientParts parts;
  const absl::StatusOr<Prompt> prompt =
      Prompt::Make(*parts.parts().hasher, *handle, input->Regions(), input->extras);
  if (!prompt.ok()) return prompt.status();
  return ExplainMiss(line, *handle, *prompt, streams.out);
}

}  // namespace

Command ExplainCommand() {
  std::vector<FlagSpec> flags = {
      {"router", "HOST:PORT,...", "127.0.0.1:7080",
       "the router that says which nodes there are, or several alike"},
      {"node", "HOST:PORT,...", "", "ask these nodes instead, and no router"},
      NamespaceFlag(),
  };
  for (const FlagSpec& flag : PromptFlags()) flags.push_back(flag);
  return {.name = "explain",
          .summary = "says why a prompt misses: evicted, another scope, a changing value, ...",
          .flags = WithCommonFlags(flags, /*asks_node=*/false),
          .run = Run};
}

}  // namespace cairn::ctl
