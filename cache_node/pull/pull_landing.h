// PullLanding: puts the frames of one transfer into reserved slots, and publishes what is whole.
//
// Everything in a frame came from outside: the store checks each piece against the layout and the
// token before a byte is copied, and hashes the bytes where they landed, once, against the writer's
// digest under the key that was reserved. A segment is committed as it is in, unless a fence
// (PullFences) refuses its block by then. The first block that cannot come ends the transfer: those
// after it would be out of reach. The destructor gives back all that is not whole. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "cache_node/pull/pull_fences.h"
#include "cache_node/pull/pull_types.h"
#include "cache_node/store/block_store.h"
#include "cache_node/tiers/provenance.h"
#include "common/identity/payload_map.h"
#include "common/wire/frame.h"
#include "common/wire/slice_cursor.h"

namespace cairn::node {

class PullLanding {
 public:
  // One block that was asked for, in the transfer's order.
  struct Block {
    BlockKey key;
    TokenId token;
    uint32_t token_block = 0;
    BlockKey scope_digest;
    Provenance provenance;
  };
  // Bytes of this segment were not the key's.
  struct Mismatch {
    BlockKey key;
    SegmentId segment;
  };

  // Borrows store, fences, target and map, which outlive it. `writer` is not used twice.
  PullLanding(BlockStore* store, const PullFences* fences, const PullTarget* target,
              const PayloadMap* map, uint64_t writer, std::vector<Block> blocks);
  ~PullLanding();

  PullLanding(const PullLanding&) = delete;
  PullLanding& operator=(const PullLanding&) = delete;

  // Not OK: the transfer is to end; what became of each block is known (OutcomeOf).
  absl::Status Land(const FrameHeader& header, SliceCursor payload);

  // After the transfer.
  PullOutcome OutcomeOf(size_t block) const;
  const std::optional<Mismatch>& mismatch() const { return mismatch_; }
  uint64_t bytes_landed() const { return bytes_landed_; }
  uint64_t bytes_dropped() const { return bytes_dropped_; }

 private:
  struct Progress {
    std::vector<bool> committed;  // By segment.
    size_t required_left = 0;
    std::optional<PullOutcome> failed;
    bool whole() const { return required_left == 0; }
  };

  absl::Status LandPiece(const PieceHeader& piece, SliceCursor payload);
  absl::Status LandMissing(const PieceHeader& piece);
  absl::Status Commit(const PieceHeader& piece);
  // The store will not have it any more, or the source sent what makes no sense.
  absl::Status Refused(const PieceHeader& piece, const absl::Status& why);
  absl::Status NoteMismatch(const PieceHeader& piece, SliceCursor payload);
  absl::Status Fail(size_t block, PullOutcome outcome, absl::string_view why);

  BlockStore* const store_;
  const PullFences* const fences_;
  const PullTarget* const target_;
  const PayloadMap* const map_;
  const uint64_t writer_;
  const std::vector<Block> blocks_;
  std::vector<Progress> progress_;
  std::optional<Mismatch> mismatch_;
  uint64_t bytes_landed_ = 0;
  uint64_t bytes_dropped_ = 0;
};

}  // namespace cairn::node
