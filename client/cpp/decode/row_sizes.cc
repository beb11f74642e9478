#include "client/cpp/decode/row_sizes.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/kv_dtype.h"
#include "kernels/kv_segment.h"

namespace cairn {
namespace {

absl::Status Wrong(absl::string_view field, uint64_t value, absl::string_view allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat("parameters: ", field, " is ", value, "; allowed: ", allowed));
}

absl::Status CheckNumbers(const Group& group, const v1::AttentionParameters& parameters) {
  if (!std::isfinite(parameters.softmax_scale()) || parameters.softmax_scale() <= 0) {
    return absl::InvalidArgumentError("parameters: softmax_scale is not a number above 0");
  }
  if (!std::isfinite(parameters.logit_soft_cap()) || parameters.logit_soft_cap() < 0) {
    return absl::InvalidArgumentError("parameters: logit_soft_cap is not 0 or above");
  }
  if (parameters.window_tokens() == 0 && parameters.sink_tokens() != 0) {
    return Wrong("sink_tokens", parameters.sink_tokens(), "0 without window_tokens");
  }
  const uint32_t latent = parameters.latent_value_dim();
  if (group.value_dim > 0 && latent != 0) {
    return Wrong("latent_value_dim", latent, "0, as the group stores values");
  }
  if (group.value_dim == 0 && (latent < 2 || latent > group.key_dim || latent % 2 != 0)) {
    return Wrong("latent_value_dim", latent, absl::StrCat("even, 2 to ", group.key_dim));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RowSizes> RowSizesOf(const PayloadMap& map,
                                    const v1::AttentionParameters& parameters) {
  const Layout& layout = map.layout();
  if (parameters.group() >= layout.groups.size()) {
    return Wrong("group", parameters.group(), absl::StrCat("below ", layout.groups.size()));
  }
  const Group& group = layout.groups[parameters.group()];
  if (group.dtype == Dtype::kOpaque || group.key_dim == 0) {
    return Wrong("group", parameters.group(), "one that stores keys, which this one does not");
  }
  const uint32_t slices = IsSliced(group.kind) ? layout.slices : 1;
  const uint32_t first = parameters.first_slice();
  if (first >= slices) return Wrong("first_slice", first, absl::StrCat("below ", slices));
  const uint32_t asked = parameters.slices() == 0 ? slices - first : parameters.slices();
  if (asked > slices - first) return Wrong("slices", asked, absl::StrCat("1 to ", slices - first));
  const uint32_t kv_heads = group.kv_heads / slices * asked;
  if (parameters.query_heads() == 0 || parameters.query_heads() % kv_heads != 0) {
    return Wrong("query_heads", parameters.query_heads(), absl::StrCat("multiples of ", kv_heads));
  }
  const auto dtype = static_cast<kernels::KvDtype>(parameters.row_dtype());
  if (!kernels::IsWideFloat(dtype)) return Wrong("row_dtype", parameters.row_dtype(), "1 to 3");
  if (absl::Status status = CheckNumbers(group, parameters); !status.ok()) return status;
  const uint64_t segment = map.parts()[*map.FindPart(parameters.group(), first)].segment_bytes;
  RowSizes sizes;
  sizes.layers = group.layers;
  sizes.first_slice = first;
  sizes.slices = asked;
  sizes.query_heads = parameters.query_heads();
  sizes.output_dim = group.value_dim == 0 ? parameters.latent_value_dim() : group.value_dim;
  sizes.query_bytes = parameters.query_heads() * kernels::RowBytes(dtype, group.key_dim);
  sizes.key_bytes = kv_heads * kernels::RowBytes(dtype, group.key_dim);
  sizes.value_bytes = kv_heads * kernels::RowBytes(dtype, group.value_dim);
  sizes.stored_bytes = static_cast<double>(segment) * asked / layout.block_tokens;
  return sizes;
}

}  // namespace cairn
