// cairnctl pin: keeps the blocks of a prompt in host memory for a while, or ends that.
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/ctl/command.h"
#include "client/ctl/inputs.h"
#include "client/ctl/usage_error.h"
#include "common/wire/limits.h"

namespace cairn::ctl {
namespace {

using Json = nlohmann::ordered_json;

absl::StatusOr<absl::Duration> PinFor(const CommandLine& line) {
  if (line.Given("for") == line.Given("release")) {
    return UsageError("give one of --for DURATION (as in 30m) and --release");
  }
  if (line.Given("release")) return absl::ZeroDuration();
  return ParseKeepTime(line, "for");
}

using Counts = std::map<std::string, uint64_t>;

// Says of how many blocks it came true, why not of the others, and what to do about that.
absl::Status NotAll(const Counts& counts, v1::PinOutcome wanted, size_t blocks) {
  const auto count = [&counts](v1::PinOutcome outcome) {
    const auto found = counts.find(v1::PinOutcome_Name(outcome));
    return found == counts.end() ? 0 : found->second;
  };
  std::string text = absl::StrCat(count(wanted), " of ", blocks, " blocks ",
                                  wanted == v1::PIN_OUTCOME_PINNED ? "pinned" : "released");
  if (const uint64_t n = count(v1::PIN_OUTCOME_NOT_THERE); n > 0) {
    absl::StrAppend(&text, "; ", n, " not in host memory: `cairnctl lookup` says where they are, ",
                    "`put` writes them, `lookup --promote` loads them from disk");
  }
  if (const uint64_t n = count(v1::PIN_OUTCOME_BUDGET); n > 0) {
    absl::StrAppend(&text, "; ", n, " beyond the pin budget: the node's --pin-memory, or pinned= ",
                    "of the tenant in its --quota-file; `cairnctl describe` says what is pinned");
  }
  if (const uint64_t n = count(v1::PIN_OUTCOME_PARENT_NOT_PINNED); n > 0) {
    absl::StrAppend(&text, "; ", n, " behind one that is not pinned");
  }
  if (const uint64_t n = count(v1::PIN_OUTCOME_NEEDED); n > 0) {
    absl::StrAppend(&text, "; ", n, " needed by a longer prompt that is pinned: release that");
  }
  return absl::AbortedError(text);
}

absl::Status Run(const CommandLine& line, const Streams& streams) {
  const absl::StatusOr<absl::Duration> pin_for = PinFor(line);
  if (!pin_for.ok()) return pin_for.status();
  const absl::StatusOr<NamespaceHandle> handle = ReadHandle(line);
  if (!handle.ok()) return handle.status();
  const absl::StatusOr<PromptInput> input = ReadPrompt(line, streams);
  if (!input.ok()) return input.status();
  NodeSession node(line);
  if (!node.status().ok()) return node.status();
  const absl::StatusOr<Prompt> prompt = node->MakePrompt(*handle, input->Regions(), input->extras);
  if (!prompt.ok()) return prompt.status();
  if (prompt->block_count() == 0 || prompt->block_count() > kKeysPerPinMax) {
    return UsageError(absl::StrCat("the prompt has ", prompt->block_count(),
                                   " full blocks; from 1 to ", kKeysPerPinMax, " can be pinned"));
  }
  const absl::StatusOr<std::vector<v1::PinOutcome>> outcomes =
      node->PinBlocks(handle->fingerprint(), prompt->keys(), *pin_for);
  if (!outcomes.ok()) return outcomes.status();
  Counts counts;
  for (const v1::PinOutcome outcome : *outcomes) ++counts[v1::PinOutcome_Name(outcome)];
  Json result = {{"blocks_total", prompt->block_count()}};
  for (const auto& [name, count] : counts) result[name] = count;
  if (absl::Status printed = Print(line, result, streams.out); !printed.ok()) return printed;
  const v1::PinOutcome wanted =
      line.Given("release") ? v1::PIN_OUTCOME_RELEASED : v1::PIN_OUTCOME_PINNED;
  if (counts[v1::PinOutcome_Name(wanted)] == outcomes->size()) return absl::OkStatus();
  return NotAll(counts, wanted, outcomes->size());
}

}  // namespace

Command PinCommand() {
  std::vector<FlagSpec> flags = {NamespaceFlag()};
  for (const FlagSpec& flag : PromptFlags()) flags.push_back(flag);
  flags.push_back({"for", "DURATION", "", "keep them in host memory for so long, as in 30m"});
  flags.push_back({"release", "", "", "they may be evicted again"});
  return {.name = "pin",
          .summary = "pins the full blocks of a prompt, which are there, within the pin budget",
          .flags = WithCommonFlags(flags, /*asks_node=*/true),
          .run = Run};
}

}  // namespace cairn::ctl
