// IndexWorkload: what a router's index goes through while a trace is served: each request is looked
// up, then goes to one of the holders, which says what it stored and what made room for it.
//
// Made before anything is timed; reading it is in order, so that it costs next to nothing. A value;
// const calls from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/base/bytes16.h"
#include "router/ids.h"
#include "tests/bench/eviction/block_trace.h"

namespace cairn::bench {

struct IndexWorkloadOptions {
  size_t holders = 128;
  uint32_t shards = 64;  // As a node has by default.
  // Each block of the trace is cut into as many as bring the mean prompt closest to this.
  uint32_t blocks_per_prompt = 100;
  // What a holder keeps: the blocks that were used last.
  uint32_t blocks_per_holder = 4096;
};

class IndexWorkload {
 public:
  // Records of one shard, in the order in which they happened.
  struct Batch {
    uint32_t first = 0;
    uint32_t records = 0;
    router::HolderIndex holder = 0;
    uint16_t shard = 0;
  };
  struct Request {
    uint32_t first_key = 0;
    uint32_t keys = 0;
    uint32_t first_batch = 0;
    uint32_t batches = 0;
  };

  static IndexWorkload Make(const BlockTrace& trace, const IndexWorkloadOptions& options);

  absl::Span<const Request> requests() const { return requests_; }
  absl::Span<const BlockKey> KeysOf(const Request& request) const {
    return absl::MakeConstSpan(keys_).subspan(request.first_key, request.keys);
  }
  absl::Span<const Batch> BatchesOf(const Request& request) const {
    return absl::MakeConstSpan(batches_).subspan(request.first_batch, request.batches);
  }
  // Keys that a batch is about; by their places, 1 where it is now held and 0 where it is gone.
  absl::Span<const BlockKey> KeysOf(const Batch& batch) const {
    return absl::MakeConstSpan(record_keys_).subspan(batch.first, batch.records);
  }
  absl::Span<const uint8_t> HeldOf(const Batch& batch) const {
    return absl::MakeConstSpan(record_held_).subspan(batch.first, batch.records);
  }

  size_t batch_count() const { return batches_.size(); }
  size_t key_count() const { return keys_.size(); }
  size_t record_count() const { return record_keys_.size(); }
  uint64_t stored() const { return stored_; }
  uint64_t removed() const { return record_keys_.size() - stored_; }

 private:
  friend class IndexWorkloadBuilder;

  std::vector<Request> requests_;
  std::vector<BlockKey> keys_;
  std::vector<Batch> batches_;
  std::vector<BlockKey> record_keys_;
  std::vector<uint8_t> record_held_;
  uint64_t stored_ = 0;
};

// As evenly spread as real keys; another number, another key.
BlockKey KeyOfNumber(uint64_t number);

}  // namespace cairn::bench
