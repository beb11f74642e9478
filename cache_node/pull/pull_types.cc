#include "cache_node/pull/pull_types.h"

namespace cairn::node {

absl::string_view PullOutcomeName(PullOutcome outcome) {
  switch (outcome) {
    case PullOutcome::kPulled:
      return "pulled";
    case PullOutcome::kPresent:
      return "present";
    case PullOutcome::kInProgress:
      return "in_progress";
    case PullOutcome::kMissing:
      return "missing";
    case PullOutcome::kNoSpace:
      return "no_space";
    case PullOutcome::kQuota:
      return "quota";
    case PullOutcome::kDeclined:
      return "declined";
    case PullOutcome::kParentMissing:
      return "parent_missing";
    case PullOutcome::kMismatch:
      return "mismatch";
    case PullOutcome::kFenced:
      return "fenced";
    case PullOutcome::kSourceFailed:
      return "source_failed";
    case PullOutcome::kSkipped:
      return "skipped";
  }
  return "other";
}

}  // namespace cairn::node
