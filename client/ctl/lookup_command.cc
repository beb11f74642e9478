// cairnctl lookup: how much of a prompt the node holds.
#include <nlohmann/json.hpp>

#include "client/ctl/command.h"
#include "client/ctl/inputs.h"
#include "common/wire/limits.h"

namespace cairn::ctl {
namespace {

using Json = nlohmann::ordered_json;

Json RunsOf(const PromptAnswer& answer) {
  Json runs = Json::array();
  for (const BlockStateRun& run : answer.runs) {
    Json one = {{"blocks", run.count}, {"state", v1::BlockState_Name(run.state)}};
    if (run.state == v1::BLOCK_STATE_PENDING) {
      one["pending_ms"] = absl::ToInt64Milliseconds(run.pending);
    }
    runs.push_back(std::move(one));
  }
  return runs;
}

absl::Status Run(const CommandLine& line, const Streams& streams) {
  const absl::StatusOr<NamespaceHandle> handle = ReadHandle(line);
  if (!handle.ok()) return handle.status();
  const absl::StatusOr<PromptInput> input = ReadPrompt(line, streams);
  if (!input.ok()) return input.status();
  const absl::StatusOr<uint32_t> wait_ms = ParseNumber(line, "wait-ms", kWaitMsMax);
  if (!wait_ms.ok()) return wait_ms.status();
  NodeSession node(line, TenantUse::kRead);
  if (!node.status().ok()) return node.status();
  const absl::StatusOr<Prompt> prompt = node->MakePrompt(*handle, input->Regions(), input->extras);
  if (!prompt.ok()) return prompt.status();
  const absl::StatusOr<LookupAnswer> answer = node->Lookup(*handle, {&*prompt, 1},
                                                           {.promote = line.Given("promote"),
                                                            .wait = absl::Milliseconds(*wait_ms),
                                                            .by_keys = line.Given("by-keys")});
  if (!answer.ok()) return answer.status();
  const PromptAnswer& one = answer->prompts[0];
  return Print(line,
               {{"namespace_known", answer->namespace_known},
                {"blocks_total", one.blocks_total},
                {"blocks_present", one.blocks_present},
                {"tokens_present", one.tokens_present},
                {"runs", RunsOf(one)}},
               streams.out);
}

}  // namespace

Command LookupCommand() {
  std::vector<FlagSpec> flags = {NamespaceFlag()};
  for (const FlagSpec& flag : PromptFlags()) flags.push_back(flag);
  flags.push_back({"promote", "", "", "load blocks that are only on disk into host memory"});
  flags.push_back({"wait-ms", "N", "0", "longest wait for blocks being written or loaded"});
  flags.push_back({"by-keys", "", "", "send keys instead of tokens"});
  return {.name = "lookup",
          .summary = "says how many leading blocks of a prompt the node holds",
          .flags = WithCommonFlags(flags, /*asks_node=*/true),
          .run = Run};
}

}  // namespace cairn::ctl
