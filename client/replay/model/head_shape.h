// HeadShape: how wide the rows of queries, keys and values are.
#pragma once

#include <cstdint>

namespace cairn::replay {

struct HeadShape {
  uint32_t query_heads = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;

  constexpr uint64_t QueryWidth() const { return uint64_t{query_heads} * head_dim; }
  constexpr uint64_t KeyWidth() const { return uint64_t{kv_heads} * head_dim; }
};

}  // namespace cairn::replay
