// GetFrames: the frames of one Get, one after another, without copying payload.
//
// A frame packs pieces of whole segments, of several parts and blocks, up to 1 MiB; a segment that
// is larger than what a frame can hold is cut into ranges. Each block is pinned once, when its
// first frame is built, and its slices share the pin: it ends when gRPC has let go of the last of
// them. Before each frame the block is asked whether it may still be read; one that may not, or is
// not there, gets a piece with its state and no payload.
//
// Not thread-safe. Borrows the store and the count, which must outlive it and all its frames'
// slices.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cache_node/service/counted_pin.h"
#include "cache_node/service/get_plan.h"
#include "cache_node/store/block_store.h"
#include "common/wire/frame.h"

namespace cairn::node {

class GetFrames {
 public:
  GetFrames(BlockStore* store, PinCount* pin_count, std::string tenant, GetPlan plan);

  // The next frame; nothing after the last. The store's status when the lease is not there (any
  // more).
  absl::StatusOr<std::optional<grpc::ByteBuffer>> Next();

  uint64_t payload_bytes() const { return payload_bytes_; }

 private:
  // A frame being filled.
  struct Draft {
    FrameHeader header;
    std::vector<grpc::Slice> slices;
    uint64_t payload_bytes = 0;
    uint64_t header_bytes = 0;  // An upper bound.
  };

  // Adds pieces of the current key. False: the frame is full.
  absl::StatusOr<bool> AddKey(Draft& draft);
  bool AddRange(const GetPlan::Range& range, Draft& draft);
  // Adds as many whole segments as fit and are there, at least one; or a state; or a range of one.
  bool AddPiece(const GetPlan::Range& range, Draft& draft);
  bool AddState(BlockState state, const SegmentId& at, Draft& draft);
  void AddPayload(const GetPlan::Range& range, size_t segments, uint64_t bytes, Draft& draft);
  static bool HasHeaderRoom(const Draft& draft, size_t digests);
  void NextKey();

  const BlockPin& pin() const { return pin_->pin(); }

  BlockStore* const store_;
  PinCount* const pin_count_;
  const std::string tenant_;
  const GetPlan plan_;
  uint64_t payload_bytes_ = 0;

  // Where the next piece begins.
  size_t key_ = 0;
  size_t range_ = 0;
  size_t segment_ = 0;   // Within the range.
  uint64_t offset_ = 0;  // Within the segment.
  // Of the current key once its first piece is built. Shared by the slices of its frames: the last
  // of them, on whatever thread, ends it.
  std::shared_ptr<const CountedPin> pin_;
};

}  // namespace cairn::node
