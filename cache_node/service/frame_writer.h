// FrameWriter: lands the frames of one Write stream in the store.
//
// The shell's only knowledge of a frame's content: which piece goes through which claim. Copies and
// hashes on the caller's thread. Not thread-safe: a stream's frames come one after another. Knows
// no RPC. Borrows the store, which must outlive it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "cache_node/store/block_store.h"
#include "cairn/v1/write.pb.h"
#include "common/wire/frame_decoder.h"

namespace cairn::node {

class FrameWriter {
 public:
  // Tokens that one stream may name, so that what it must give back at its end is bounded.
  static constexpr size_t kTokensMax = 1024;

  // `writer` names the stream in the store and is not used twice.
  FrameWriter(BlockStore* store, std::string tenant, uint64_t writer)
      : store_(store), tenant_(std::move(tenant)), writer_(writer) {}
  // As End.
  ~FrameWriter() { End(); }

  FrameWriter(const FrameWriter&) = delete;
  FrameWriter& operator=(const FrameWriter&) = delete;

  // What landed and what did not, piece by piece. INVALID_ARGUMENT for a frame that says nothing
  // (no token, no pieces): the stream should end.
  absl::StatusOr<v1::WriteResponse> Land(const ReceivedFrame& frame);

  // Gives back what the stream began and did not finish. Idempotent.
  void End();

  uint64_t bytes_landed() const { return bytes_landed_; }

 private:
  absl::Status LandPiece(const TokenId& token, const PieceHeader& piece, SliceCursor& payload);

  BlockStore* const store_;
  const std::string tenant_;
  const uint64_t writer_;
  absl::flat_hash_set<TokenId> tokens_;
  uint64_t bytes_landed_ = 0;
};

}  // namespace cairn::node
