#include "common/rpc/caller_identity.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn {

absl::StatusOr<std::string> TenantFor(const Caller& caller, absl::string_view requested,
                                      TenantUse use) {
  CAIRN_CHECK(!caller.tenant.empty());
  if (requested.empty() || requested == caller.tenant) return caller.tenant;
  if (use == TenantUse::kRead && requested == kPublicTenant) return std::string(kPublicTenant);
  return absl::PermissionDeniedError(
      absl::StrCat("tenant \"", requested, "\": this caller acts for \"", caller.tenant,
                   "\" only; leave the tenant empty or name that one"));
}

}  // namespace cairn
