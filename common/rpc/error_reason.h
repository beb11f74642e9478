// Why, for programs: a stable reason and facts that travel with a status.
//
// It is a google.rpc.ErrorInfo payload of the absl::Status; the message says the same for people.
// No state; thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace cairn {

inline constexpr char kErrorInfoTypeUrl[] = "type.googleapis.com/google.rpc.ErrorInfo";

// The domain of our reasons.
inline constexpr char kErrorDomain[] = "cairn";

struct ErrorReason {
  // Upper snake case, for example NAMESPACE_UNKNOWN.
  std::string reason;
  // Facts, for example {"flag": "--host-memory"}.
  std::map<std::string, std::string> metadata;
};

// `status` with a reason, which replaces an earlier one. REQUIRES: not OK.
absl::Status WithReason(absl::Status status, absl::string_view reason,
                        const std::map<std::string, std::string>& metadata = {});

// The reason, if it has one of our domain.
std::optional<ErrorReason> ReasonOf(const absl::Status& status);

}  // namespace cairn
