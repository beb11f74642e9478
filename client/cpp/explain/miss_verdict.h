// MissVerdict: what the answers of nodes about one prompt amount to. Pure functions.
//
// The nodes that hold most of the prompt decide, and of these the reason that says most about the
// first block that none of them holds. In doubt it is "not held": a node remembers a bounded number
// of blocks that left.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/v1/explain.pb.h"

namespace cairn {

enum class MissReason {
  kHeld,              // Nothing of the prompt is missing.
  kTooShort,          // It has no full block.
  kNamespaceUnknown,  // To all that were asked.
  kNamespaceDiffers,  // And a known one differs in a field that is named.
  kPending,           // Being written, or loaded.
  kRemoved,           // It was there; the state says how it left.
  kScopeDiffers,      // The same tokens are held under another scope of the tenant.
  kChangingValue,     // A value of a few tokens differs, and all behind it is equal again.
  kDiverges,          // From a token on it is another prompt than what is held.
  kNotHeld,           // Never seen, or gone longer ago than is remembered.
  kNobodyAnswered,
};

// kNotHeld is "NOT_HELD".
std::string MissReasonName(MissReason reason);

// One node's answer, or why there is none.
struct NodeExplanation {
  std::string address;
  absl::Status status;
  v1::ExplainPromptResponse answer;  // Where OK.
};

struct MissVerdict {
  MissReason reason = MissReason::kNobodyAnswered;
  // Address of the node whose answer it is; empty where it is of none alone.
  std::string node = {};
  uint64_t cached_tokens = 0;  // Consecutive ones that some node holds.
  // Of the first token that makes the difference; of kChangingValue, how many differ.
  uint64_t position = 0;
  uint32_t differing_tokens = 0;
  // For people: what it is, and what to do.
  std::string text = {};
};

// `prompt_tokens` of the whole prompt, its last partial block too; `block_tokens` of the namespace
// as the caller has it.
MissVerdict VerdictOf(uint64_t prompt_tokens, uint32_t block_tokens,
                      absl::Span<const NodeExplanation> nodes);

}  // namespace cairn
