// TenantQuotas: what each tenant may take of a node, and what is kept for it. Plain values.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace cairn::node {

struct TenantQuota {
  static constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

  // Slots in host memory, reserved and pinned ones among them. A tenant that wants more makes room
  // among its own blocks.
  uint64_t host_bytes_max = kUnlimited;
  // Blocks of others take no room from what the tenant has up to here, and while it has less it
  // takes from those that have more than is kept for them, however new.
  uint64_t host_bytes_kept = 0;
  // Payload on disk. Blocks beyond it are not written until some of the tenant's have left.
  uint64_t disk_bytes_max = kUnlimited;
  uint64_t leased_bytes_max = kUnlimited;
  uint64_t reserved_bytes_max = kUnlimited;
  // Of blocks that its writers, or an admin, wish to stay.
  uint64_t stays_bytes_max = kUnlimited;

  friend bool operator==(const TenantQuota&, const TenantQuota&) = default;
};

struct TenantQuotas {
  TenantQuota others;  // Of each tenant that is not named.
  absl::flat_hash_map<std::string, TenantQuota> named;

  const TenantQuota& Of(absl::string_view tenant) const {
    const auto it = named.find(tenant);
    return it == named.end() ? others : it->second;
  }
};

}  // namespace cairn::node
