#include "common/security/audit.h"

#include "absl/strings/str_cat.h"
#include "common/base/hex.h"
#include "common/security/rpc_rules.h"
#include "common/security/text_lines.h"

namespace cairn {
namespace {

// Enough to find the namespace among those of a fleet.
constexpr size_t kFingerprintBytesShown = 6;

}  // namespace

bool IsAudited(absl::string_view method) {
  const RpcRule* const rule = FindRpcRule(method);
  return rule != nullptr && rule->audited;
}

std::string AuditLine(absl::string_view method, const absl::StatusOr<Caller>& caller,
                      absl::string_view fingerprint, const absl::Status& outcome) {
  const std::string who =
      caller.ok() ? absl::StrCat(Shown(caller->id), " for the tenant ", Shown(caller->tenant))
                  : "nobody who may";
  return absl::StrCat("audit: ", method, " by ", who, ", namespace ",
                      ToHex(fingerprint.substr(0, kFingerprintBytesShown)), ": ",
                      absl::StatusCodeToString(outcome.code()));
}

}  // namespace cairn
