#include "common/rpc/caller_identity.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace cairn {
namespace {

// Tenants of one caller that a message names.
constexpr size_t kNamedMax = 4;

std::string Own(const Caller& caller) {
  if (caller.all_tenants) return "all tenants";
  std::string names;
  size_t named = 0;
  const auto add = [&](absl::string_view tenant) {
    if (named++ < kNamedMax) absl::StrAppend(&names, names.empty() ? "\"" : ", \"", tenant, "\"");
  };
  if (!caller.tenant.empty()) add(caller.tenant);
  for (const std::string& tenant : caller.tenants) {
    if (tenant != caller.tenant) add(tenant);
  }
  if (named > kNamedMax) absl::StrAppend(&names, " and ", named - kNamedMax, " others");
  return names.empty() ? "no tenant" : names;
}

}  // namespace

bool Caller::MayActFor(absl::string_view other) const {
  if (other.empty()) return false;
  return all_tenants || other == tenant ||
         std::find(tenants.begin(), tenants.end(), other) != tenants.end();
}

bool Caller::MaySee(absl::string_view other) const {
  return Is(Role::kRouter) || Is(Role::kAdmin) || other == kPublicTenant || MayActFor(other);
}

absl::StatusOr<std::string> TenantFor(const Caller& caller, absl::string_view requested,
                                      TenantUse use) {
  if (requested.empty()) {
    if (!caller.tenant.empty()) return caller.tenant;
    return absl::PermissionDeniedError(
        absl::StrCat("no tenant is named, and ", caller.id, " acts for ", Own(caller),
                     "; name one in the scope, or in the metadata ", kTenantMetadata));
  }
  if (caller.MayActFor(requested)) return std::string(requested);
  if (use == TenantUse::kRead && requested == kPublicTenant) return std::string(kPublicTenant);
  return absl::PermissionDeniedError(absl::StrCat("tenant \"", requested, "\": ", caller.id,
                                                  " acts for ", Own(caller),
                                                  " only; name one of these"));
}

std::string RequestOwnerOf(const Caller& caller, absl::string_view tenant) {
  // Unambiguous: the length says where the id ends.
  return absl::StrCat(caller.id.size(), ":", caller.id, tenant);
}

}  // namespace cairn
