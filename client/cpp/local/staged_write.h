// StagedWrite: segments written through the node's staging memory, where it is on this host.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "client/cpp/frame_packer.h"
#include "client/cpp/local/local_link.h"
#include "client/cpp/segment_buffers.h"
#include "client/cpp/segment_selection.h"
#include "common/base/bytes16.h"

namespace cairn {

// Writes items (as FramePacker counts them) from `first` on, as far as it goes, and calls `landed`
// for each, in order, once it is in with this digest. Answers the first item that is not: the rest
// is for the channel, which also finds out what is wrong with it.
size_t WriteThroughStaging(LocalLink* local, const TokenId& token,
                           const SegmentSelection& selection,
                           absl::Span<const FramePacker::Block> blocks, SegmentSource source,
                           size_t first, absl::Time deadline,
                           absl::FunctionRef<void(size_t item, uint64_t digest)> landed);

}  // namespace cairn
