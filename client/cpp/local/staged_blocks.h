// StagedBlocks: memory of a node on the same host that blocks are computed into, to be written with
// a single copy: the node's, into their slots.
//
// Move-only; while it lives, other writes of its client go over the connection. What it holds is to
// be written soon: memory that is not used for kLocalStagingIdle goes back to the node, and
// WriteStaged then says so. Not thread-safe. The client outlives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/cpp/local/local_link.h"
#include "common/base/bytes16.h"
#include "common/identity/payload_map.h"

namespace cairn {

class StagedBlocks {
 public:
  // For the session. `blocks`: indexes in its keys. UNAVAILABLE where there is no local path or no
  // room for so many; INVALID_ARGUMENT when they are more than staging memory ever holds.
  static absl::StatusOr<StagedBlocks> Make(LocalLink* link, const PayloadMap& map,
                                           absl::Span<const uint32_t> blocks, absl::Time deadline);

  size_t size() const { return blocks_.size(); }
  // Index in the session's keys.
  uint32_t index(size_t block) const { return blocks_[block]; }
  // Where to put it, parts as the PayloadMap says; holds what was there before.
  absl::Span<uint8_t> bytes(size_t block);

  // For the session: takes all of it in, and calls `landed` with the digest of each segment that is
  // in its slot now, blocks and segments in order. Nothing is sent otherwise when it fails.
  absl::Status Land(const TokenId& token, const PayloadMap& map, absl::Time deadline,
                    absl::FunctionRef<void(size_t block, size_t segment, uint64_t digest)> landed);

 private:
  StagedBlocks(LocalLink* link, LocalLink::Staging staging, uint64_t block_bytes,
               std::vector<uint32_t> blocks)
      : link_(link),
        staging_(std::move(staging)),
        block_bytes_(block_bytes),
        blocks_(std::move(blocks)) {}

  LocalLink* link_;
  LocalLink::Staging staging_;
  uint64_t block_bytes_;
  std::vector<uint32_t> blocks_;
};

}  // namespace cairn
