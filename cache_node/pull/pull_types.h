// What pulls are about: whose blocks, and what became of each. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "common/identity/fingerprint.h"

namespace cairn::node {

// Whose blocks, here and at the peer.
struct PullTarget {
  std::string tenant;
  Fingerprint fingerprint;
};

// What became of one block. The numbers are those of cairn.v1.PullOutcome.
enum class PullOutcome : uint8_t {
  kPulled = 1,
  kPresent = 2,
  kInProgress = 3,
  kMissing = 4,
  kNoSpace = 5,
  kQuota = 6,
  kDeclined = 7,
  kParentMissing = 8,
  kMismatch = 9,
  kFenced = 10,
  kSourceFailed = 11,
  kSkipped = 12,
};
inline constexpr size_t kPullOutcomeEnd = 13;

// As label values of metrics have them.
absl::string_view PullOutcomeName(PullOutcome outcome);

// Blocks after it can be reached here, or will be: a pull goes on behind it.
inline bool LeadsOn(PullOutcome outcome) {
  return outcome == PullOutcome::kPulled || outcome == PullOutcome::kPresent ||
         outcome == PullOutcome::kInProgress;
}

}  // namespace cairn::node
