// Roles: what kinds of calls a caller may make. Whose blocks it may touch is another question
// (caller_identity.h).
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>

#include "absl/strings/string_view.h"

namespace cairn {

enum class Role : uint8_t {
  kWorker,   // Reads and writes blocks of its tenants, and asks routers.
  kRouter,   // Follows the feeds of nodes, over all tenants.
  kNode,     // Reads blocks of other nodes.
  kAdmin,    // Retires namespaces, removes blocks, sees the load of all tenants.
  kMetrics,  // Asks how nodes and routers are.
};

// Names as in an access file, by the roles' numbers.
inline constexpr std::array<absl::string_view, 5> kRoleNames = {"worker", "router", "node", "admin",
                                                                "metrics"};

constexpr std::optional<Role> RoleNamed(absl::string_view name) {
  for (size_t i = 0; i < kRoleNames.size(); ++i) {
    if (kRoleNames[i] == name) return static_cast<Role>(i);
  }
  return std::nullopt;
}

// A value.
class RoleSet {
 public:
  constexpr RoleSet() = default;
  constexpr RoleSet(std::initializer_list<Role> roles) {
    for (const Role role : roles) Add(role);
  }

  static constexpr RoleSet All() {
    return {Role::kWorker, Role::kRouter, Role::kNode, Role::kAdmin, Role::kMetrics};
  }

  constexpr void Add(Role role) {
    bits_ = static_cast<uint8_t>(bits_ | 1u << static_cast<unsigned>(role));
  }
  constexpr bool Has(Role role) const { return (bits_ >> static_cast<unsigned>(role) & 1u) != 0; }
  constexpr bool HasAnyOf(RoleSet others) const { return (bits_ & others.bits_) != 0; }
  constexpr bool empty() const { return bits_ == 0; }

  friend constexpr bool operator==(const RoleSet&, const RoleSet&) = default;

 private:
  uint8_t bits_ = 0;
};

}  // namespace cairn
