// AppendRows: K and V of new positions of one sequence, of one layer and some slices. Borrows.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/kv_dtype.h"

namespace cairn::node {

struct AppendRows {
  uint32_t group = 0;
  uint32_t first_slice = 0;
  uint32_t slices = 1;
  uint32_t layer = 0;
  uint64_t position = 0;  // Of the first row.
  uint32_t rows = 0;
  // [rows][KV heads of all these slices][key_dim] and [...][value_dim], little-endian, no gaps.
  absl::string_view keys;
  absl::string_view values;
  kernels::KvDtype row_dtype = kernels::KvDtype::kFloat32;
  absl::Span<const uint32_t> tokens;  // One a row, or none.
};

}  // namespace cairn::node
