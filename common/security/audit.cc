#include "common/security/audit.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/hex.h"
#include "common/security/rpc_rules.h"
#include "common/security/text_lines.h"

namespace cairn {
namespace {

// Enough to find the namespace among those of a fleet.
constexpr size_t kFingerprintBytesShown = 6;

// ToGrpcStatus sends details of google.rpc only, so this one stays here.
constexpr char kIdentityUrl[] = "cairn/identity";

std::string Who(const absl::StatusOr<Caller>& caller) {
  if (caller.ok()) {
    return absl::StrCat(Shown(caller->id), " for the tenant ", Shown(caller->tenant));
  }
  const std::optional<std::string> identity = IdentityIn(caller.status());
  return identity.has_value() ? absl::StrCat(Shown(*identity), ", who may not") : "nobody who may";
}

}  // namespace

bool IsAudited(absl::string_view method) {
  const RpcRule* const rule = FindRpcRule(method);
  return rule != nullptr && rule->audited;
}

std::string AboutNamespace(absl::string_view fingerprint) {
  return absl::StrCat("namespace ", ToHex(fingerprint.substr(0, kFingerprintBytesShown)));
}

std::string AboutLabel(absl::string_view name) { return absl::StrCat("label ", Shown(name)); }

std::string AboutWriter(absl::string_view writer, int64_t since_unix_ms) {
  return absl::StrCat(
      "writer ", Shown(writer), " since ",
      since_unix_ms == 0 ? "ever"
                         : absl::FormatTime(absl::RFC3339_full, absl::FromUnixMillis(since_unix_ms),
                                            absl::UTCTimeZone()));
}

std::string AuditLine(absl::string_view method, const absl::StatusOr<Caller>& caller,
                      absl::string_view about, const absl::Status& outcome) {
  return absl::StrCat("audit: ", method, " by ", Who(caller), ", ", about, ": ",
                      absl::StatusCodeToString(outcome.code()));
}

absl::Status WithIdentity(absl::Status status, absl::string_view identity) {
  status.SetPayload(kIdentityUrl, absl::Cord(identity));
  return status;
}

std::optional<std::string> IdentityIn(const absl::Status& status) {
  const auto payload = status.GetPayload(kIdentityUrl);
  if (!payload.has_value()) return std::nullopt;
  return std::string(*payload);
}

}  // namespace cairn
