// Who may make which call: one row for every method of every service. A method without a row may
// not be called. Immutable; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/rpc/role.h"

namespace cairn {

struct RpcRule {
  // As in "CacheNode/Lookup".
  absl::string_view method;
  // One of these is needed.
  RoleSet roles;
  // It is about one tenant's blocks and has no scope that says whose: the caller must act for one.
  bool acts_for_tenant = false;
  // An audit line says who made it, about what, and how it ended.
  bool audited = false;
};

absl::Span<const RpcRule> AllRpcRules();

// Null: there is no such method.
const RpcRule* FindRpcRule(absl::string_view method);

// "worker or admin", for messages.
std::string NamesOf(RoleSet roles);

}  // namespace cairn
