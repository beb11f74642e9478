// DecodeSlot: one request under way on a DecodeStream, with its answer: read, done by the engine,
// written, and used again.
//
// Keeps its stream alive while the engine has it. Of one thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "cache_node/decode/engine/decode_step.h"
#include "cairn/v1/decode.pb.h"

namespace cairn::node {

class DecodeSlot;

// Whom a slot tells that it is done.
class DecodeSlotOwner {
 public:
  virtual ~DecodeSlotOwner() = default;
  virtual void OnStepDone(DecodeSlot* slot) = 0;
};

class DecodeSlot final : public DecodeStep {
 public:
  // Messages that are larger are freed when it is given back.
  static constexpr uint64_t kKeptBytes = 32 << 10;

  // Lent to the engine from now on until OnStepDone.
  void Lend(std::shared_ptr<DecodeSlotOwner> owner) { owner_ = std::move(owner); }
  void TakeBack() { owner_ = nullptr; }
  void OnDone() override {
    const std::shared_ptr<DecodeSlotOwner> owner = std::move(owner_);
    owner->OnStepDone(this);
  }

  // Its results are all that is still of use.
  void DropRequest() {
    items = {};
    request = {};
  }

  // For the next request.
  void Clear() {
    // Messages keep the room of what is cleared, of fields that are not known too.
    const uint64_t held = std::max<uint64_t>(request_bytes, request.ByteSizeLong()) + result_bytes;
    if (held > kKeptBytes / 2) {
      items = {};
      results = {};
      request = {};
      response = {};
    } else {
      items.clear();
      results.clear();
      request.Clear();
      response.Clear();
    }
    request_bytes = result_bytes = 0;
    taken_bytes = 0;
    Revive();
  }

  v1::DecodeRequest request;
  v1::DecodeResponse response;
  uint64_t taken_bytes = 0;  // Of DecodeBytes.

 private:
  std::shared_ptr<DecodeSlotOwner> owner_;
};

}  // namespace cairn::node
