// Values of the store as messages of the contract, and small checks of request fields.
//
// Stateless, so thread-safe.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cache_node/store/feed_message.h"
#include "cache_node/store/store_types.h"
#include "cairn/v1/cache_node.pb.h"
#include "cairn/v1/feed.pb.h"
#include "cairn/v1/write.pb.h"

namespace cairn::node {

// Whole milliseconds within what the contract's fields hold; part of one rounds up.
uint32_t ToMilliseconds(absl::Duration duration);

// INVALID_ARGUMENT when it is over kWaitMsMax.
absl::Status CheckWait(uint32_t wait_ms);
// INVALID_ARGUMENT when the batch is empty or larger than `max`.
absl::Status CheckCount(absl::string_view field, size_t count, size_t max);

void ToMessage(const LeaseStatus& status, v1::GetLeaseResponse* message);
void ToMessage(const ReserveAnswer& answer, v1::ReserveResponse* message);
void ToMessage(const CommitAnswer& answer, v1::CommitResponse* message);
void ToMessage(const NamespaceStatus& status, v1::NamespaceInfo* message);
void ToMessage(const TenantStatus& status, v1::TenantInfo* message);
// `sequence` stays as it is.
void ToMessage(const ShardSums& sums, v1::ShardDigest* message);

// A piece of a commit. INVALID_ARGUMENT when it has no digests, or an offset, length or state.
absl::StatusOr<SegmentRun> RunFromProto(const v1::Piece& piece);

}  // namespace cairn::node
