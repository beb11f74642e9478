// GetPlan: a checked GetRequest: which layers of which parts to send of which keys.
//
// A plain value. Says nothing of what is there: that is asked when frames are built.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/v1/cache_node.pb.h"
#include "common/base/bytes16.h"
#include "common/identity/fingerprint.h"
#include "common/identity/payload_map.h"

namespace cairn::node {

struct GetPlan {
  // Consecutive layers of one part.
  struct Range {
    size_t part = 0;           // Index in PayloadMap::parts().
    size_t first_segment = 0;  // Index in the PayloadMap.
    size_t segments = 0;
  };

  Fingerprint fingerprint;
  std::optional<LeaseId> lease;
  std::vector<BlockKey> keys;
  const PayloadMap* map = nullptr;  // Null: the namespace is not known, and every key is a miss.
  std::vector<Range> ranges;        // In the order asked for. Empty without a map.

  // If all of it is there.
  uint64_t payload_bytes() const;
};

// INVALID_ARGUMENT naming what is wrong: lengths, counts, duplicate keys, parts that the layout
// does not have or that overlap. `map` is the namespace's, or null when it is not known.
absl::StatusOr<GetPlan> MakeGetPlan(const v1::GetRequest& request, const PayloadMap* map);

}  // namespace cairn::node
