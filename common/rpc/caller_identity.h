// Who calls: the identity that every right of a request follows from.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace cairn {

// Tenant of the operator's shared blocks, which every caller may read.
inline constexpr char kPublicTenant[] = "public";

struct Caller {
  // Stable for one principal over its connections: request ids belong to (id, request id).
  std::string id;
  // The one tenant that it may act for.
  std::string tenant;
  // May retire namespaces, and see all tenants.
  bool admin = false;

  friend bool operator==(const Caller&, const Caller&) = default;
};

enum class TenantUse { kRead, kWrite };

// The tenant that a request's field `requested` stands for: the caller's own when it is empty or
// names it; `public` too, for reading. PERMISSION_DENIED naming both tenants for any other.
absl::StatusOr<std::string> TenantFor(const Caller& caller, absl::string_view requested,
                                      TenantUse use);

}  // namespace cairn
