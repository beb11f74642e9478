// What a warp's operations compute, once all lanes brought what is theirs. Pure functions.
#pragma once

#include <cstdint>

namespace cairn::simt::emulated {

inline constexpr uint32_t kLanes = 32;

// What one lane brings to an operation and takes from it.
struct alignas(16) LaneSlot {
  static constexpr uint32_t kValueBytes = 16;

  // Shuffled values; addresses of matrix rows; fragments of matrices as a[4], b[2], sum[4].
  unsigned char bytes[48] = {};
  uint32_t argument = 0;  // The lane to take from; a truth; an offset.
};

// Lane l takes the value of lane slots[l].argument.
void ShuffleLanes(LaneSlot* slots);

// Every lane takes a word of one bit a lane: whether its argument is not 0.
void BallotLanes(LaneSlot* slots);

// rows[m][r]: 16 bytes of row r of matrix m. Every lane takes its four words.
void TakeFragments(const unsigned char* const (&rows)[4][8], bool transposed, LaneSlot* slots);

// sum += A * B, products and sums in float32, along k in ascending order.
void MultiplyFragments(bool is_bfloat16, LaneSlot* slots);

}  // namespace cairn::simt::emulated
