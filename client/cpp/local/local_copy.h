// LocalCopy: a Get out of the node's memory, where it is on this host.
#pragma once

#include "absl/types/span.h"
#include "client/cpp/block_reader.h"
#include "client/cpp/namespace_handle.h"
#include "client/cpp/received_blocks.h"
#include "client/cpp/segment_buffers.h"
#include "client/cpp/segment_selection.h"
#include "common/base/bytes16.h"

namespace cairn {

class LocalLink;

// Copies every block that lies in the node's host memory with all selected segments, checks what
// came, and tells `received` of the blocks that are good. All others are left as they were, for a
// Get over the channel: those that are not there, have changed meanwhile or do not match, and all
// where there is no local path, or the node does not answer before `deadline` (LocalLink).
void CopyLocalBlocks(LocalLink* local, const NamespaceHandle& name_space,
                     absl::Span<const BlockKey> keys, SegmentPlace place, const GetOptions& options,
                     const SegmentSelection& selection, absl::Time deadline,
                     ReceivedBlocks* received);

}  // namespace cairn
