#include "cache_node/decode/sequence/row_check.h"

#include <cstring>

#include "common/base/check.h"

namespace cairn::node {
namespace {

using kernels::KvDtype;

// The least magnitude, as bits, that is refused: magnitudes of floats order as their bits do.
template <typename Bits>
std::optional<size_t> FirstFrom(absl::string_view rows, Bits refused) {
  constexpr Bits kMagnitude = static_cast<Bits>(~Bits{0}) >> 1;
  const size_t count = rows.size() / sizeof(Bits);
  const auto at = [&](size_t i) {
    Bits bits;
    std::memcpy(&bits, rows.data() + i * sizeof(Bits), sizeof(Bits));
    return static_cast<Bits>(bits & kMagnitude);
  };
  // Without a branch for each, as nearly all rows are fine.
  Bits largest = 0;
  for (size_t i = 0; i < count; ++i) largest = largest > at(i) ? largest : at(i);
  if (largest < refused) return std::nullopt;
  for (size_t i = 0; i < count; ++i) {
    if (at(i) >= refused) return i;
  }
  return std::nullopt;
}

}  // namespace

std::optional<size_t> FirstUnstorable(absl::string_view rows, KvDtype source, KvDtype stored) {
  switch (source) {
    case KvDtype::kFloat16:
      return FirstFrom<uint16_t>(rows, 0x7c00);
    case KvDtype::kBfloat16:
      // 65,536 is beyond float16's 65,504, and the next smaller bfloat16 is not.
      return FirstFrom<uint16_t>(rows, stored == KvDtype::kFloat16 ? 0x4780 : 0x7f80);
    case KvDtype::kFloat32:
      // From 65,520 on float16 rounds to infinity; from the last half step on bfloat16 does.
      if (stored == KvDtype::kFloat16) return FirstFrom<uint32_t>(rows, 0x477ff000);
      if (stored == KvDtype::kBfloat16) return FirstFrom<uint32_t>(rows, 0x7f7f8000);
      return FirstFrom<uint32_t>(rows, 0x7f800000);
    default:
      CAIRN_CHECK_MSG(false, "rows are floats of 16 or 32 bits");
  }
}

}  // namespace cairn::node
