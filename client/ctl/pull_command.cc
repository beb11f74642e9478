// cairnctl pull: has a node copy the blocks of a prompt from a peer.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/ctl/command.h"
#include "client/ctl/inputs.h"
#include "client/ctl/usage_error.h"
#include "common/wire/limits.h"

namespace cairn::ctl {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kWaitMsDefault = 60'000;
constexpr uint32_t kWaitMsAtMost = 3'600'000;

// What came of all of it.
struct Pulled {
  std::map<v1::PullOutcome, uint64_t> counts;
  uint64_t bytes = 0;
  std::string detail;

  uint64_t Count(v1::PullOutcome outcome) const {
    const auto found = counts.find(outcome);
    return found == counts.end() ? 0 : found->second;
  }
};

// These keys, asked for until nothing of them is on its way, or the time is over.
absl::StatusOr<PullAnswer> PullSome(const CommandLine& line, const Fingerprint& fingerprint,
                                    absl::Span<const BlockKey> keys, absl::Time deadline,
                                    NodeSession* node) {
  absl::StatusOr<PullAnswer> answer;
  uint64_t bytes = 0;
  do {
    const absl::Duration left = std::max(deadline - absl::Now(), absl::ZeroDuration());
    answer = (*node)->PullBlocks(fingerprint, line.Get("from"), keys,
                                 std::min(left, absl::Milliseconds(kWaitMsMax)));
    if (!answer.ok()) return answer;
    // What an earlier call brought is there to a later one.
    bytes = std::max(bytes, answer->pulled_bytes);
  } while (!answer->complete && absl::Now() < deadline);
  answer->pulled_bytes = bytes;
  return answer;
}

absl::StatusOr<Pulled> PullAll(const CommandLine& line, const Fingerprint& fingerprint,
                               absl::Span<const BlockKey> keys, absl::Duration wait,
                               NodeSession* node) {
  const absl::Time deadline = absl::Now() + wait;
  Pulled pulled;
  for (size_t first = 0; first < keys.size(); first += kKeysPerPullMax) {
    const auto some = keys.subspan(first, kKeysPerPullMax);
    const absl::StatusOr<PullAnswer> answer = PullSome(line, fingerprint, some, deadline, node);
    if (!answer.ok()) return answer.status();
    for (const v1::PullOutcome outcome : answer->outcomes) ++pulled.counts[outcome];
    pulled.bytes += answer->pulled_bytes;
    pulled.detail = answer->detail;
    const v1::PullOutcome last = answer->outcomes.back();
    if (last == v1::PULL_OUTCOME_PULLED || last == v1::PULL_OUTCOME_PRESENT) continue;
    pulled.counts[v1::PULL_OUTCOME_SKIPPED] += keys.size() - first - some.size();
    break;
  }
  return pulled;
}

// What to do about the first reason that there is.
std::string Advice(const Pulled& pulled, const std::string& from) {
  const auto has = [&](v1::PullOutcome outcome) { return pulled.Count(outcome) > 0; };
  if (has(v1::PULL_OUTCOME_IN_PROGRESS)) return "the rest is on its way: ask again";
  if (has(v1::PULL_OUTCOME_SOURCE_FAILED)) return absl::StrCat(from, ": ", pulled.detail);
  if (has(v1::PULL_OUTCOME_MISSING)) {
    return absl::StrCat(from, " has the next one not (any more): `cairnctl lookup` there says why");
  }
  if (has(v1::PULL_OUTCOME_NO_SPACE)) return "the node has no room that it may take";
  if (has(v1::PULL_OUTCOME_QUOTA)) {
    return "the tenant has no more room: host= in the node's --quota-file";
  }
  if (has(v1::PULL_OUTCOME_DECLINED)) return "the node's eviction policy wants no more of it now";
  if (has(v1::PULL_OUTCOME_PARENT_MISSING)) {
    return "the block before the first is not there: a prompt's public region is pulled by itself, "
           "with --tenant public";
  }
  if (has(v1::PULL_OUTCOME_FENCED)) {
    return "the next one was cleared, purged or retired at the node since it was written";
  }
  return absl::StrCat(from, " sent bytes that are not the key's, and was told");
}

absl::Status Run(const CommandLine& line, const Streams& streams) {
  if (!line.Given("from")) return UsageError("--from: give the id of the node to copy from");
  const absl::StatusOr<uint32_t> wait_ms = ParseNumber(line, "wait-ms", kWaitMsAtMost);
  if (!wait_ms.ok()) return wait_ms.status();
  const absl::StatusOr<NamespaceHandle> handle = ReadHandle(line);
  if (!handle.ok()) return handle.status();
  const absl::StatusOr<PromptInput> input = ReadPrompt(line, streams);
  if (!input.ok()) return input.status();
  NodeSession node(line);
  if (!node.status().ok()) return node.status();
  const absl::StatusOr<Prompt> prompt = node->MakePrompt(*handle, input->Regions(), input->extras);
  if (!prompt.ok()) return prompt.status();
  if (prompt->block_count() == 0) return UsageError("the prompt has no full block");
  const absl::StatusOr<Pulled> pulled =
      PullAll(line, handle->fingerprint(), prompt->keys(), absl::Milliseconds(*wait_ms), &node);
  if (!pulled.ok()) return pulled.status();
  Json result = {{"blocks_total", prompt->block_count()}, {"pulled_bytes", pulled->bytes}};
  for (const auto& [outcome, count] : pulled->counts) {
    if (count > 0) result[v1::PullOutcome_Name(outcome)] = count;
  }
  if (absl::Status printed = Print(line, result, streams.out); !printed.ok()) return printed;
  const uint64_t here =
      pulled->Count(v1::PULL_OUTCOME_PULLED) + pulled->Count(v1::PULL_OUTCOME_PRESENT);
  if (here == prompt->block_count()) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(here, " of ", prompt->block_count(), " blocks are there; ",
                                         Advice(*pulled, line.Get("from"))));
}

}  // namespace

Command PullCommand() {
  std::vector<FlagSpec> flags = {NamespaceFlag()};
  for (const FlagSpec& flag : PromptFlags()) flags.push_back(flag);
  flags.push_back({"from", "NODE-ID", "", "a peer that has them, as the node's --peer-file says"});
  flags.push_back(
      {"wait-ms", "N", absl::StrCat(kWaitMsDefault), "longest wait; the copying goes on after it"});
  return {.name = "pull",
          .summary = "has the node copy the full blocks of a prompt from another node",
          .flags = WithCommonFlags(flags, /*asks_node=*/true),
          .run = Run};
}

}  // namespace cairn::ctl
