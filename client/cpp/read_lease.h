// ReadLease: one reader's share of a lease that a lookup took.
//
// While it lasts, the leased blocks keep their places on the node (no memory is reused
// under a reader). Move-only. A share that was not ended says on destruction that this reader could
// use nothing, waiting a bounded time; its time to live guards against clients that never come to
// that. The node may revoke. Not thread-safe. The client outlives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/cpp/get_result.h"
#include "common/base/bytes16.h"

namespace cairn {

class NodeLink;

class ReadLease {
 public:
  // For the client. `prompts` is how many the lookup had.
  ReadLease(NodeLink* link, const LeaseId& id, uint32_t reader, size_t prompts, absl::Duration ttl);
  ~ReadLease();

  ReadLease(ReadLease&& other) noexcept;
  ReadLease& operator=(ReadLease&& other) noexcept;

  const LeaseId& id() const { return id_; }
  uint32_t reader() const { return reader_; }
  size_t prompt_count() const { return prompts_; }
  // As granted last.
  absl::Duration ttl() const { return ttl_; }
  bool ended() const { return ended_; }

  // Extends this share; zero takes the node's default. The time to live granted, or ABORTED when
  // the lease is over.
  absl::StatusOr<absl::Duration> Renew(absl::Duration ttl);

  // Ends this share. `usable_blocks`: by prompt, how many leading blocks this reader could use; and
  // what did not match, for the node to check. Whether all readers have ended. INVALID_ARGUMENT
  // when there is not one number a prompt.
  absl::StatusOr<bool> End(absl::Span<const uint32_t> usable_blocks,
                           absl::Span<const MismatchedSegment> mismatches = {});

  // Leaves the share to whoever else knows its id and number: destruction does nothing.
  void Release() { ended_ = true; }

 private:
  void EndQuietly();

  NodeLink* link_;  // Null when moved from.
  LeaseId id_;
  uint32_t reader_;
  size_t prompts_;
  absl::Duration ttl_;
  bool ended_ = false;
};

}  // namespace cairn
