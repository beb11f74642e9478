// 3.3: the memory under a frame that is on its way does not change: the bytes that arrive are those
// that were handed out.
#pragma once

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/sim/invariants/invariant.h"

namespace cairn::sim {

class NoReuseUnderReader final : public Invariant {
 public:
  explicit NoReuseUnderReader(const Scene* scene) : Invariant(scene, "no_reuse_under_reader") {}

  void OnFrameArrived(absl::Span<const BlockKey> keys, uint64_t digest_sent,
                      uint64_t digest_now) override {
    if (digest_sent == digest_now) return;
    if (std::any_of(keys.begin(), keys.end(),
                    [this](const BlockKey& key) { return truth().Damaged(key); })) {
      return;
    }
    Violated(absl::StrCat("a frame of ", keys.size(), " blocks from ",
                          ShortHex(keys.front().view()), " on changed under its reader"));
  }
};

}  // namespace cairn::sim
