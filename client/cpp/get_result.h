// GetResult: exactly which segments of a Get can be used.
//
// Plain value. A segment is good when every byte of it arrived and its digest, computed over those
// bytes where they lie now, is the one for the key, group, slice and layer asked for. The buffer of
// every segment that is not good is zeros; only a call that was refused as INVALID_ARGUMENT before
// it began left the buffers alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "cairn/v1/block.pb.h"
#include "common/base/bytes16.h"
#include "common/identity/payload_map.h"

namespace cairn {

// Why a block cannot be used.
enum class BlockFailure {
  kNone,         // It can.
  kNotThere,     // A miss: the node said why in `state`.
  kMismatch,     // Bytes came that are not the key's; reported to the node.
  kNotReceived,  // The call ended first; `GetResult::status` says how.
};

struct FetchedBlock {
  BlockFailure failure = BlockFailure::kNotReceived;
  // kNotThere: why. A number that this version does not know is passed on.
  v1::BlockState state = v1::BLOCK_STATE_UNSPECIFIED;

  // All segments that were asked for are good, also those of groups that are not required: leave
  // these out of the selection (RequiredParts) where they need not be there.
  bool good() const { return failure == BlockFailure::kNone; }
};

// A segment whose bytes were not the key's.
struct MismatchedSegment {
  size_t block = 0;  // Index in the keys asked for.
  BlockKey key;
  SegmentId id;
};

struct GetResult {
  // How the call ended. Not OK does not take back what is good, and OK does not say that anything
  // is: a miss is no error.
  absl::Status status;
  // One a key, in order.
  std::vector<FetchedBlock> blocks;
  // Consecutive good blocks from the start.
  size_t usable_prefix = 0;
  uint64_t bytes_verified = 0;
  uint64_t segments_verified = 0;
  // At most kMismatchesPerEndMax are listed.
  std::vector<MismatchedSegment> mismatches;
  uint64_t mismatches_total = 0;
  // Of the reported mismatches, those that the node found in its own copy too.
  uint64_t mismatches_confirmed = 0;
  // By block, then by index in the call's SegmentSelection.
  std::vector<bool> segments_good;
  size_t segments_per_block = 0;

  // False for what was not asked for.
  bool SegmentGood(size_t block, size_t segment) const {
    const size_t index = block * segments_per_block + segment;
    return segment < segments_per_block && index < segments_good.size() && segments_good[index];
  }
  bool AllGood() const { return status.ok() && usable_prefix == blocks.size(); }
};

}  // namespace cairn
