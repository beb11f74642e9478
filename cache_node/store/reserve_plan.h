// PlanReserve: from what a writer says of its blocks to what the store is asked, with every key
// recomputed. A pure function: it knows no store.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cache_node/store/store_types.h"
#include "common/identity/block_hasher.h"
#include "common/identity/key_chain.h"
#include "common/identity/scope.h"

namespace cairn::node {

// As in cairn.v1.ReserveRequest. Spans borrow.
struct ReserveFields {
  Scope scope = {};
  // Last block of the first region, for a second one.
  std::optional<BlockKey> region_parent = std::nullopt;
  std::optional<BlockKey> parent = std::nullopt;  // Block before the first one, within the region.
  absl::Span<const BlockKey> keys = {};
  absl::Span<const uint32_t> tokens = {};
  ExtrasByBlock extras = {};  // By index into `keys`.
  absl::Span<const std::string> external_ids = {};
  absl::Duration ttl = absl::ZeroDuration();
};

// INVALID_ARGUMENT naming the field when they are not what the namespace's key scheme asks for. A
// key that differs is not an error: `mismatch_at` of the answer says which is the first.
absl::StatusOr<ReserveQuery> PlanReserve(const BlockHasher& hasher, const KeyRules& rules,
                                         const ReserveFields& fields);

}  // namespace cairn::node
