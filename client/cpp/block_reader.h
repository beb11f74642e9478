// BlockReader: one Get into the caller's buffers, verified, with retries for what is missing.
//
// Thread-safe: holds no state of a call.
#pragma once

#include <optional>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/cpp/get_result.h"
#include "client/cpp/namespace_handle.h"
#include "client/cpp/segment_buffers.h"
#include "client/cpp/segment_selection.h"
#include "common/base/bytes16.h"

namespace cairn {

class NodeLink;

struct GetOptions {
  // All keys must be in it; without one the node pins for this call only.
  std::optional<LeaseId> lease = std::nullopt;
  // What to fetch of each block; empty: every part.
  std::vector<PartLayers> parts = {};
  // Zero takes the client's data_timeout.
  absl::Duration timeout = absl::ZeroDuration();
  // Tell the node of each mismatch, so that it checks its own copy.
  bool report_mismatches = true;
};

class BlockReader {
 public:
  // Borrows the link.
  explicit BlockReader(NodeLink* link) : link_(link) {}

  // See CacheNodeClient::Get.
  GetResult Get(const NamespaceHandle& name_space, absl::Span<const BlockKey> keys,
                SegmentPlace place, const GetOptions& options) const;

  // Whether the node found its own copy bad too.
  absl::StatusOr<bool> ReportMismatch(const Fingerprint& fingerprint, const BlockKey& key,
                                      const SegmentId& id) const;

 private:
  NodeLink* link_;
};

}  // namespace cairn
