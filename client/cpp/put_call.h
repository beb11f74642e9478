// One Put: reservations, writes and commits until every block of a prompt is settled.
#pragma once

#include "absl/status/statusor.h"
#include "client/cpp/namespace_handle.h"
#include "client/cpp/prompt.h"
#include "client/cpp/put_types.h"
#include "client/cpp/segment_buffers.h"

namespace cairn {

class NodeLink;

// See CacheNodeClient::Put.
absl::StatusOr<PutResult> PutBlocks(NodeLink* link, const NamespaceHandle& name_space,
                                    const Prompt& prompt, SegmentSource source,
                                    const PutOptions& options);

}  // namespace cairn
