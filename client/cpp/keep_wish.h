// KeepWish: how long a writer wants its blocks kept (cairn.v1.Retention). A plain value.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace cairn {

struct KeepWish {
  // 0 to 100: of a tenant's blocks those of the lowest priority make room first. None: 35.
  std::optional<uint32_t> priority = std::nullopt;
  // How long it holds; zero: as long as the block lives.
  absl::Duration priority_for = absl::ZeroDuration();
  // Then the block is gone from every tier, and all that follow it; zero: never.
  absl::Duration ttl = absl::ZeroDuration();
  // So long it is not evicted from host memory, within the pin budgets of tenant and node; zero: no
  // such wish. Counts from the prompt's start: a block is pinned only after those before it.
  absl::Duration pin_for = absl::ZeroDuration();
};

}  // namespace cairn
