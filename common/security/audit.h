// Audit lines: who made a call that removes or changes something, about what, and how it ended.
//
// One line each, for the program's log. Names that come from outside are made printable and cut,
// fingerprints are truncated; no keys, no tokens. No state; thread-safe. AuditTrail bounds them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/rpc/caller_identity.h"

namespace cairn {

// Whether the rules (rpc_rules.h) want a line for each call of the method.
bool IsAudited(absl::string_view method);

// What a call is about. `fingerprint` raw; empty: about none.
std::string AboutNamespace(absl::string_view fingerprint);
std::string AboutLabel(absl::string_view name);
std::string AboutWriter(absl::string_view writer, int64_t since_unix_ms);

// `caller` as it was resolved, or why it was not.
std::string AuditLine(absl::string_view method, const absl::StatusOr<Caller>& caller,
                      absl::string_view about, const absl::Status& outcome);

// A refusal of a caller that has proven who it is carries that, within this process only.
absl::Status WithIdentity(absl::Status status, absl::string_view identity);
std::optional<std::string> IdentityIn(const absl::Status& status);

}  // namespace cairn
