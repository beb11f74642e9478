// Usage errors: what the person at the keyboard wrote is wrong, as opposed to what happened.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace cairn::ctl {

// INVALID_ARGUMENT that IsUsageError tells from a node's.
absl::Status UsageError(absl::string_view message);
bool IsUsageError(const absl::Status& status);

// Code and message, without what a status carries for programs.
std::string TextOf(const absl::Status& status);

// "; did you mean X?" for the nearest of `known`, or nothing when none is near.
std::string Suggestion(absl::string_view unknown, const std::vector<std::string>& known);

}  // namespace cairn::ctl
