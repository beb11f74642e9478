// FakeEngine: a PrefillEngine whose KV is the synthetic payload of its keys. Fake: it computes in
// no time, and remembers for whom and from where, and what lay in the blocks before.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/cpp/namespace_handle.h"
#include "client/cpp/prefill_engine.h"
#include "client/cpp/prompt.h"
#include "client/cpp/segment_buffers.h"
#include "client/cpp/synthetic_payload.h"

namespace cairn::testing {

class FakeEngine final : public PrefillEngine {
 public:
  FakeEngine(const NamespaceHandle* handle, const Prompt* prompt)
      : handle_(handle),
        prompt_(prompt),
        bytes_(prompt->block_count() * handle->block_bytes(), uint8_t{0xa5}) {}

  // What Compute answers, and what it does first.
  absl::StatusOr<absl::Duration> answer = absl::ZeroDuration();
  std::function<void()> before_compute = [] {};

  int computations() const { return computations_; }
  // Of the last computation.
  size_t first_block() const { return first_block_; }
  const std::string& worker_address() const { return worker_address_; }
  // Whether required segments of all blocks before first_block() held what their keys say.
  bool prefix_was_right() const { return prefix_was_right_; }

  void UsePrompt(const Prompt& prompt) override { prompt_ = &prompt; }

  absl::Span<uint8_t> PlaceOf(size_t block, const SegmentId& id) override {
    return ContiguousBlocks(&handle_->payload_map(), absl::MakeSpan(bytes_))(block, id);
  }

  absl::StatusOr<absl::Duration> Compute(const std::string& worker_address,
                                         size_t first_block) override {
    before_compute();
    ++computations_;
    worker_address_ = worker_address;
    first_block_ = first_block;
    const PayloadMap& map = handle_->payload_map();
    for (size_t block = 0; block < prompt_->block_count(); ++block) {
      for (size_t i = 0; i < map.segment_count(); ++i) {
        const SegmentId id = map.SegmentAt(i);
        if (block >= first_block) {
          FillSyntheticSegment(map, prompt_->keys()[block], id, PlaceOf(block, id));
        } else if (map.parts()[map.PartOfSegment(i)].required) {
          prefix_was_right_ = prefix_was_right_ && IsSyntheticSegment(map, prompt_->keys()[block],
                                                                      id, PlaceOf(block, id));
        }
      }
    }
    return answer;
  }

  absl::Span<const uint8_t> BytesOf(size_t block, const SegmentId& id) override {
    return PlaceOf(block, id);
  }

 private:
  const NamespaceHandle* handle_;
  const Prompt* prompt_;
  std::vector<uint8_t> bytes_;
  int computations_ = 0;
  size_t first_block_ = 0;
  std::string worker_address_;
  bool prefix_was_right_ = true;
};

}  // namespace cairn::testing
