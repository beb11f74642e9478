// Dice: the decisions of one part of a simulation, all from one seed. Each part has dice of its
// own, so that one more throw here changes nothing there. Not thread-safe.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/check.h"
#include "kernels/byte_hash.h"

namespace cairn::sim {

class Dice {
 public:
  // `part` names who throws them.
  Dice(uint64_t seed, absl::string_view part)
      : state_(kernels::ByteHash64(part.data(), part.size(), seed)) {}

  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  // Evenly in [0, n). REQUIRES: n > 0.
  uint64_t Below(uint64_t n) {
    CAIRN_CHECK(n > 0);
    return Next() % n;
  }
  // Evenly in [least, most].
  uint64_t Between(uint64_t least, uint64_t most) { return least + Below(most - least + 1); }
  absl::Duration Between(absl::Duration least, absl::Duration most) {
    return least + absl::Nanoseconds(static_cast<int64_t>(
                       Below(static_cast<uint64_t>(absl::ToInt64Nanoseconds(most - least)) + 1)));
  }
  bool Chance(uint32_t in_ten_thousand) { return Below(10'000) < in_ten_thousand; }

 private:
  uint64_t state_;
};

}  // namespace cairn::sim
