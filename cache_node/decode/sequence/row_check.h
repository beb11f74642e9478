// RowCheck: whether rows that a worker sent can be stored: as numbers, not as infinities.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "kernels/kv_dtype.h"

namespace cairn::node {

// Index of the first element that is not finite, or would not be once stored. REQUIRES: `source` is
// a float of 16 or 32 bits.
std::optional<size_t> FirstUnstorable(absl::string_view rows, kernels::KvDtype source,
                                      kernels::KvDtype stored);

}  // namespace cairn::node
