// Who calls: the identity that every right of a request follows from.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/rpc/role.h"

namespace cairn {

// Tenant of the operator's shared blocks, which every caller may read.
inline constexpr char kPublicTenant[] = "public";

// Metadata of a call that says which of its tenants a caller acts for, where no scope says it.
inline constexpr char kTenantMetadata[] = "cairn-tenant";

struct Caller {
  // Stable for one principal over its connections: request ids belong to (id, request id).
  std::string id;
  // Whose blocks a call is about that names no scope. Empty: it acts for none, or for several and
  // did not say which.
  std::string tenant;
  RoleSet roles = {};
  // Tenants that it may act for, beside `tenant`; or all of them.
  std::vector<std::string> tenants = {};
  bool all_tenants = false;

  bool Is(Role role) const { return roles.Has(role); }
  bool MayActFor(absl::string_view other) const;
  // May be shown the blocks of this tenant in a feed.
  bool MaySee(absl::string_view other) const;

  friend bool operator==(const Caller&, const Caller&) = default;
};

enum class TenantUse { kRead, kWrite };

// The tenant that a request's field `requested` stands for: when it is empty, the one that the call
// acts for; else it must be one of the caller's; `public` too, for reading. PERMISSION_DENIED
// naming both for any other.
absl::StatusOr<std::string> TenantFor(const Caller& caller, absl::string_view requested,
                                      TenantUse use);

// Whose request ids these are: those that a caller uses for one tenant are not those for another.
std::string RequestOwnerOf(const Caller& caller, absl::string_view tenant);

}  // namespace cairn
