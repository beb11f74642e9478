#include "kernels/simt/warp_operations.h"

#include <cstddef>
#include <cstring>

#include "kernels/float_formats.h"

namespace cairn::simt::emulated {
namespace {

constexpr uint32_t kRows = 16;
constexpr uint32_t kColumns = 8;
constexpr uint32_t kDepth = 16;

struct MultiplyOperands {
  uint32_t a[4];
  uint32_t b[2];
  float sum[4];
};
static_assert(sizeof(MultiplyOperands) <= sizeof(LaneSlot::bytes));

float Decode(bool is_bfloat16, uint32_t bits) {
  const uint16_t code = static_cast<uint16_t>(bits);
  return is_bfloat16 ? kernels::FloatOfBfloat16(code) : kernels::FloatOfFloat16(code);
}

}  // namespace

void ShuffleLanes(LaneSlot* slots) {
  unsigned char values[kLanes][LaneSlot::kValueBytes];
  for (uint32_t l = 0; l < kLanes; ++l) std::memcpy(values[l], slots[l].bytes, sizeof(values[l]));
  for (uint32_t l = 0; l < kLanes; ++l) {
    std::memcpy(slots[l].bytes, values[slots[l].argument % kLanes], sizeof(values[l]));
  }
}

void BallotLanes(LaneSlot* slots) {
  uint32_t votes = 0;
  for (uint32_t l = 0; l < kLanes; ++l) votes |= uint32_t{slots[l].argument != 0} << l;
  for (uint32_t l = 0; l < kLanes; ++l) slots[l].argument = votes;
}

void TakeFragments(const unsigned char* const (&rows)[4][8], bool transposed, LaneSlot* slots) {
  for (uint32_t l = 0; l < kLanes; ++l) {
    for (uint32_t m = 0; m < 4; ++m) {
      unsigned char* const word = slots[l].bytes + m * 4;
      const uint32_t row = l / 4;
      const uint32_t column = l % 4 * 2;
      if (!transposed) {
        std::memcpy(word, rows[m][row] + column * 2, 4);
      } else {
        std::memcpy(word, rows[m][column] + row * 2, 2);
        std::memcpy(word + 2, rows[m][column + 1] + row * 2, 2);
      }
    }
  }
}

void MultiplyFragments(bool is_bfloat16, LaneSlot* slots) {
  float a[kRows][kDepth];
  float b[kDepth][kColumns];
  float sum[kRows][kColumns];
  MultiplyOperands operands;
  for (uint32_t l = 0; l < kLanes; ++l) {
    std::memcpy(&operands, slots[l].bytes, sizeof(operands));
    const uint32_t row = l / 4;
    const uint32_t pair = l % 4 * 2;
    for (uint32_t half = 0; half < 2; ++half) {
      for (uint32_t i = 0; i < 4; ++i) {
        a[row + i % 2 * 8][pair + i / 2 * 8 + half] =
            Decode(is_bfloat16, operands.a[i] >> (half * 16));
      }
      for (uint32_t i = 0; i < 2; ++i) {
        b[pair + i * 8 + half][row] = Decode(is_bfloat16, operands.b[i] >> (half * 16));
        sum[row + i * 8][pair + half] = operands.sum[i * 2 + half];
      }
    }
  }
  for (uint32_t i = 0; i < kRows; ++i) {
    for (uint32_t k = 0; k < kDepth; ++k) {
      for (uint32_t j = 0; j < kColumns; ++j) sum[i][j] += a[i][k] * b[k][j];
    }
  }
  for (uint32_t l = 0; l < kLanes; ++l) {
    const float taken[4] = {sum[l / 4][l % 4 * 2], sum[l / 4][l % 4 * 2 + 1],
                            sum[l / 4 + 8][l % 4 * 2], sum[l / 4 + 8][l % 4 * 2 + 1]};
    std::memcpy(slots[l].bytes + offsetof(MultiplyOperands, sum), taken, sizeof(taken));
  }
}

}  // namespace cairn::simt::emulated
