#include "client/replay/model/model_shape.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/check.h"

namespace cairn::replay {

absl::Status ValidateModelShape(const ModelShape& shape) {
  const struct {
    absl::string_view field;
    uint32_t value, least, most;
  } sizes[] = {
      {"vocabulary", shape.vocabulary, 2, kModelSizeMax},
      {"layers", shape.layers, 1, kLayersMax},
      {"hidden", shape.hidden, 1, kModelSizeMax},
      {"query_heads", shape.query_heads, 1, cairn::kKvHeadsMax},
      {"kv_heads", shape.kv_heads, 1, cairn::kKvHeadsMax},
      {"head_dim", shape.head_dim, 2, kernels::kHeadDimMax},
      {"ffn", shape.ffn, 1, kModelSizeMax},
  };
  for (const auto& size : sizes) {
    if (size.value < size.least || size.value > size.most) {
      return absl::InvalidArgumentError(absl::StrCat("model: ", size.field, " is ", size.value,
                                                     "; allowed: ", size.least, " to ", size.most));
    }
  }
  if (shape.query_heads % shape.kv_heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat("model: query_heads ", shape.query_heads,
                                                   " is not a multiple of kv_heads ",
                                                   shape.kv_heads));
  }
  if (shape.head_dim % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model: head_dim ", shape.head_dim, " is odd; rotary positions turn pairs of numbers"));
  }
  if (WeightCount(shape) > kModelWeightsMax) {
    return absl::InvalidArgumentError(absl::StrCat("model: ", WeightCount(shape),
                                                   " weights are more than ", kModelWeightsMax,
                                                   "; take fewer layers or smaller ones"));
  }
  return absl::OkStatus();
}

uint64_t WeightCount(const ModelShape& shape) {
  const uint64_t hidden = shape.hidden;
  const uint64_t queries = uint64_t{shape.query_heads} * shape.head_dim;
  const uint64_t keys = uint64_t{shape.kv_heads} * shape.head_dim;
  const uint64_t layer = hidden * (2 * queries + 2 * keys) + 3 * hidden * shape.ffn + 2 * hidden;
  return layer * shape.layers + 2 * hidden * shape.vocabulary + hidden;
}

Layout ModelLayout(const ModelShape& shape, Dtype dtype, ScaleKind scales, uint32_t block_tokens,
                   uint32_t slices) {
  Group group;
  group.kind = GroupKind::kFull;
  group.layers = shape.layers;
  group.kv_heads = shape.kv_heads;
  group.key_dim = shape.head_dim;
  group.value_dim = shape.head_dim;
  group.dtype = dtype;
  group.scales = scales;
  Layout layout;
  layout.version = kLayoutVersion;
  layout.block_tokens = block_tokens;
  layout.slices = slices;
  layout.groups.push_back(group);
  return layout;
}

kernels::KvShape PageShape(const Layout& layout) {
  CAIRN_CHECK(layout.groups.size() == 1 && layout.slices > 0);
  const Group& group = layout.groups[0];
  CAIRN_CHECK(group.dtype != Dtype::kOpaque && IsSliced(group.kind));
  kernels::KvShape shape;
  shape.kv_heads = group.kv_heads / layout.slices;
  shape.page_tokens = layout.block_tokens;
  shape.key_dim = group.key_dim;
  shape.value_dim = group.value_dim;
  shape.dtype = static_cast<kernels::KvDtype>(group.dtype);
  shape.scales = static_cast<kernels::KvScales>(group.scales);
  return shape;
}

}  // namespace cairn::replay
