#include "common/rpc/prompt_tenant.h"

#include "absl/strings/str_cat.h"

namespace cairn {

absl::StatusOr<std::string> TenantOfPrompts(absl::Span<const v1::Prompt* const> prompts,
                                            const Caller& caller) {
  absl::string_view named;
  for (const v1::Prompt* prompt : prompts) {
    for (const v1::Region& region : prompt->regions()) {
      const absl::string_view tenant = region.scope().tenant();
      if (tenant.empty() || tenant == kPublicTenant || tenant == named) continue;
      if (!named.empty()) {
        return absl::InvalidArgumentError(absl::StrCat("scopes of the tenants \"", named,
                                                       "\" and \"", tenant,
                                                       "\": ask for each in a call of its own"));
      }
      named = tenant;
    }
  }
  return TenantFor(caller, named, TenantUse::kRead);
}

}  // namespace cairn
