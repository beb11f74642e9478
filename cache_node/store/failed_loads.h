// FailedLoads: blocks whose last load failed though they may be intact, until they may be tried
// again. A bounded ring: the oldest is forgotten first. Not thread-safe: under the store's lock.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "cache_node/store/block_families.h"

namespace cairn::node {

class FailedLoads {
 public:
  static constexpr size_t kEntriesMax = 4096;

  void Add(const ParentId& block, absl::Time until);
  bool Contains(const ParentId& block, absl::Time now) const;
  void Forget(const ParentId& block) { until_.erase(block); }

 private:
  std::vector<ParentId> ring_;
  size_t next_ = 0;
  absl::flat_hash_map<ParentId, absl::Time> until_;
};

}  // namespace cairn::node
