// Audit lines: who made a call that removes something, about what, and how it ended.
//
// One line each, for the program's log. Names that come from outside are made printable and cut,
// fingerprints are truncated; no keys, no tokens.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/rpc/caller_identity.h"

namespace cairn {

// Gets lines; called on several threads, with no lock held.
using AuditLog = std::function<void(absl::string_view line)>;

// Whether the rules (rpc_rules.h) want a line for each call of the method.
bool IsAudited(absl::string_view method);

// `caller` as it was resolved, or why it was not; `fingerprint` raw.
std::string AuditLine(absl::string_view method, const absl::StatusOr<Caller>& caller,
                      absl::string_view fingerprint, const absl::Status& outcome);

}  // namespace cairn
