#include "client/cpp/explain/miss_verdict.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"

namespace cairn {
namespace {

using Answer = v1::ExplainPromptResponse;
using Nodes = std::vector<const NodeExplanation*>;

bool IsRemoved(v1::BlockState state) {
  return state == v1::BLOCK_STATE_EVICTED || state == v1::BLOCK_STATE_DELETED ||
         state == v1::BLOCK_STATE_QUARANTINED || state == v1::BLOCK_STATE_LOAD_FAILED;
}

// What a node says goes to a terminal.
std::string Printable(absl::string_view said) {
  std::string printable(said);
  for (char& c : printable) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = '?';
  }
  return printable;
}

std::string StateText(v1::BlockState state) {
  std::string name = v1::BlockState_Name(state);
  name = absl::AsciiStrToLower(absl::StripPrefix(name, "BLOCK_STATE_"));
  return absl::StrReplaceAll(name, {{"_", " "}});
}

MissVerdict WithoutBlocks(uint64_t prompt_tokens, uint32_t block_tokens) {
  return {
      .reason = MissReason::kTooShort,
      .text = absl::StrCat("The prompt has ", prompt_tokens, " tokens, and a block ", block_tokens,
                           ": only full blocks are cached. A namespace with shorter blocks "
                           "would cache it.")};
}

MissVerdict NobodyAnswered(absl::Span<const NodeExplanation> nodes) {
  return {.reason = MissReason::kNobodyAnswered,
          .text = nodes.empty()
                      ? "No node was asked: none is known."
                      : absl::StrCat("None of ", nodes.size(),
                                     " nodes answered; the first: ", nodes.front().address, ": ",
                                     Printable(nodes.front().status.message()))};
}

MissVerdict NamespaceVerdict(const Nodes& answered) {
  for (const NodeExplanation* node : answered) {
    if (node->answer.namespaces().empty()) continue;
    const v1::NamespaceDifference& near = node->answer.namespaces(0);
    return {
        .reason = MissReason::kNamespaceDiffers,
        .node = node->address,
        .text = absl::StrCat("No node knows this namespace. The nearest that is known, \"",
                             Printable(near.name()), "\", differs: ", Printable(near.difference()),
                             " (there: the node; here: the request). Blocks are shared only "
                             "where every field is equal.")};
  }
  return {.reason = MissReason::kNamespaceUnknown,
          .text =
              "No node knows this namespace, nor another one of this tenant. Workers bind it "
              "with RegisterNamespace (`cairnctl register`)."};
}

MissVerdict PendingVerdict(const NodeExplanation& node) {
  return {.reason = MissReason::kPending,
          .node = node.address,
          .text =
              "The first missing block is being written or loaded now: a lookup that waits "
              "(wait_ms) finds it."};
}

MissVerdict RemovedVerdict(const NodeExplanation& node) {
  const Answer& answer = node.answer;
  const std::string when =
      answer.has_removed_ms_ago()
          ? absl::StrCat(" ", absl::FormatDuration(absl::Milliseconds(answer.removed_ms_ago())),
                         " ago")
          : "";
  std::string advice;
  if (answer.state() == v1::BLOCK_STATE_EVICTED) {
    advice =
        ": it made room for others. More memory, a disk tier or a higher priority would have kept "
        "it; cairn_hit_rate_at_capacity says what more memory brings.";
  } else if (answer.state() == v1::BLOCK_STATE_LOAD_FAILED) {
    advice = ": it is on disk and cannot be read now; `cairnctl describe` says how the disk is.";
  } else {
    advice = ".";
  }
  return {.reason = MissReason::kRemoved,
          .node = node.address,
          .text = absl::StrCat("The first missing block was held by ", Printable(answer.node_id()),
                               " and is ", StateText(answer.state()), when, advice)};
}

MissVerdict ScopeVerdict(const NodeExplanation& node) {
  const v1::OtherScope& other = node.answer.other_scope();
  std::vector<std::string> what;
  if (other.adapter_differs()) {
    what.push_back(absl::StrCat("adapter \"", Printable(other.adapter()), "\""));
  }
  if (other.salt_differs()) what.push_back("another salt");
  return {.reason = MissReason::kScopeDiffers,
          .node = node.address,
          .text = absl::StrCat("The same tokens are held under another scope of this tenant (",
                               absl::StrJoin(what, ", "), "). Scopes share nothing, by design.")};
}

MissVerdict DivergenceVerdict(const NodeExplanation& node) {
  const v1::Divergence& difference = node.answer.divergence();
  MissVerdict verdict = {.reason = MissReason::kDiverges,
                         .node = node.address,
                         .position = difference.position(),
                         .differing_tokens = difference.differing_tokens()};
  const std::string tokens = absl::StrCat(
      "token ", difference.position(), " is ", difference.asked_token(), " in the prompt and ",
      difference.held_token(), " in the nearest one held (", Printable(node.answer.node_id()), ")");
  if (difference.differing_tokens() == 0) {
    verdict.text = absl::StrCat("The prompt is another one from there on: ", tokens, ".");
    return verdict;
  }
  verdict.reason = MissReason::kChangingValue;
  verdict.text = absl::StrCat("A value of ", difference.differing_tokens(), " token",
                              difference.differing_tokens() == 1 ? "" : "s",
                              " changes at position ", difference.position(), ": ", tokens,
                              ", and behind it both are equal again. A timestamp or an id at the "
                              "start of prompts looks so: "
                              "everything behind it misses. Move it behind what prompts share.");
  return verdict;
}

MissVerdict NotHeld(uint64_t position) {
  return {.reason = MissReason::kNotHeld,
          .position = position,
          .text = absl::StrCat(
              "From token ", position,
              " on no node holds it, nor remembers it: it was never computed with this cache, or "
              "left longer ago than nodes remember (--removed-memory-entries).")};
}

// Of the nodes that hold most: the one whose answer says most.
MissVerdict Weigh(const Nodes& best, uint64_t position) {
  const auto find = [&best](auto matches) {
    const auto found = std::find_if(best.begin(), best.end(), [&](const NodeExplanation* node) {
      return matches(node->answer);
    });
    return found == best.end() ? nullptr : *found;
  };
  if (const auto* node =
          find([](const Answer& a) { return a.state() == v1::BLOCK_STATE_PENDING; })) {
    return PendingVerdict(*node);
  }
  if (const auto* node = find([](const Answer& a) { return IsRemoved(a.state()); })) {
    return RemovedVerdict(*node);
  }
  if (const auto* node = find([](const Answer& a) { return a.has_other_scope(); })) {
    return ScopeVerdict(*node);
  }
  const NodeExplanation* nearest = nullptr;
  for (const NodeExplanation* node : best) {
    // Nothing in common with what stands there: that is no near prefix.
    if (!node->answer.has_divergence()) continue;
    const v1::Divergence& difference = node->answer.divergence();
    if (difference.position() == 0 && difference.differing_tokens() == 0) continue;
    if (nearest == nullptr || nearest->answer.divergence().position() < difference.position()) {
      nearest = node;
    }
  }
  return nearest == nullptr ? NotHeld(position) : DivergenceVerdict(*nearest);
}

}  // namespace

std::string MissReasonName(MissReason reason) {
  switch (reason) {
    case MissReason::kHeld:
      return "HELD";
    case MissReason::kTooShort:
      return "TOO_SHORT";
    case MissReason::kNamespaceUnknown:
      return "NAMESPACE_UNKNOWN";
    case MissReason::kNamespaceDiffers:
      return "NAMESPACE_DIFFERS";
    case MissReason::kPending:
      return "PENDING";
    case MissReason::kRemoved:
      return "REMOVED";
    case MissReason::kScopeDiffers:
      return "SCOPE_DIFFERS";
    case MissReason::kChangingValue:
      return "CHANGING_VALUE";
    case MissReason::kDiverges:
      return "DIVERGES";
    case MissReason::kNotHeld:
      return "NOT_HELD";
    case MissReason::kNobodyAnswered:
      return "NOBODY_ANSWERED";
  }
  return "UNKNOWN";
}

MissVerdict VerdictOf(uint64_t prompt_tokens, uint32_t block_tokens,
                      absl::Span<const NodeExplanation> nodes) {
  if (prompt_tokens < block_tokens) return WithoutBlocks(prompt_tokens, block_tokens);
  Nodes answered;
  for (const NodeExplanation& node : nodes) {
    if (node.status.ok()) answered.push_back(&node);
  }
  if (answered.empty()) return NobodyAnswered(nodes);
  Nodes best;
  for (const NodeExplanation* node : answered) {
    if (!node->answer.namespace_known()) continue;
    const uint32_t most = best.empty() ? 0 : best.front()->answer.blocks_present();
    if (!best.empty() && node->answer.blocks_present() < most) continue;
    if (node->answer.blocks_present() > most) best.clear();
    best.push_back(node);
  }
  if (best.empty()) return NamespaceVerdict(answered);
  const Answer& first = best.front()->answer;
  const uint64_t cached = uint64_t{first.blocks_present()} * block_tokens;
  MissVerdict verdict;
  if (first.blocks_present() >= first.blocks_total()) {
    verdict = {.reason = MissReason::kHeld,
               .node = best.front()->address,
               .text = absl::StrCat(Printable(first.node_id()), " holds all ", first.blocks_total(),
                                    " full blocks.")};
  } else {
    verdict = Weigh(best, cached);
  }
  verdict.cached_tokens = cached;
  return verdict;
}

}  // namespace cairn
