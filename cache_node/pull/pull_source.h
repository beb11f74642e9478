// PullSource: one peer, as pulls ask it; PullSources: the peers of this node by their ids.
//
// Interfaces, so that tests and the simulator give others than the network. What a source answers
// came from outside: of its records only the form was checked, of its frames nothing. Calls block
// the caller, within bounds of the implementation's. Thread-safe.
#pragma once

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cache_node/pull/pull_types.h"
#include "cache_node/store/block_record.h"
#include "common/base/bytes16.h"
#include "common/identity/payload_map.h"
#include "common/wire/frame.h"
#include "common/wire/slice_cursor.h"

namespace cairn::node {

class PullSource {
 public:
  virtual ~PullSource() = default;

  // One record a key; scopes that records name are there. Blocks beyond what one answer holds are
  // kNotLeased.
  virtual absl::StatusOr<BlockRecords> Describe(const PullTarget& target,
                                                absl::Span<const BlockKey> keys) = 0;
  // Has blocks that are only on disk loaded; returns when they are, or after a bounded wait.
  virtual absl::Status Promote(const PullTarget& target, absl::Span<const BlockKey> keys) = 0;

  // Takes one frame; not OK ends the transfer, which then ends so.
  using Sink = absl::FunctionRef<absl::Status(const FrameHeader& header, SliceCursor payload)>;
  // All parts of all these blocks that it has, in order.
  virtual absl::Status Fetch(const PullTarget& target, absl::Span<const BlockKey> keys,
                             Sink sink) = 0;

  // Its bytes of a segment were not the key's. Best effort.
  virtual void ReportMismatch(const PullTarget& target, const BlockKey& key,
                              const SegmentId& segment) = 0;
};

class PullSources {
 public:
  virtual ~PullSources() = default;
  // FAILED_PRECONDITION, saying what to do, when there is no such peer. Shared, because a pull
  // keeps its source while the list of peers changes.
  virtual absl::StatusOr<std::shared_ptr<PullSource>> Find(absl::string_view node_id) = 0;
};

}  // namespace cairn::node
