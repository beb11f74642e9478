#include "cache_node/decode/engine/attend_shape.h"

#include <cmath>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "kernels/attention/attention.h"

namespace cairn::node {
namespace {

absl::Status Wrong(absl::string_view field, absl::string_view value, absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", value, ", must be ", allowed));
}

absl::Status SetSlices(const AttendParameters& parameters, uint32_t slices_of_group,
                       AttendShape* shape) {
  if (parameters.first_slice >= slices_of_group) {
    return Wrong("first_slice", absl::StrCat(parameters.first_slice),
                 absl::StrCat("under ", slices_of_group, ", the slices of the group"));
  }
  const uint32_t most = slices_of_group - parameters.first_slice;
  if (parameters.slices > most) {
    return Wrong("slices", absl::StrCat(parameters.slices),
                 absl::StrCat("at most ", most, " from slice ", parameters.first_slice, " on"));
  }
  shape->first_slice = parameters.first_slice;
  shape->slices = parameters.slices == 0 ? most : parameters.slices;
  return absl::OkStatus();
}

absl::Status SetHeads(const AttendParameters& parameters, AttendShape* shape) {
  const uint64_t kv_heads = uint64_t{shape->slices} * shape->kv.kv_heads;
  if (parameters.query_heads == 0 || parameters.query_heads % kv_heads != 0 ||
      parameters.query_heads > kernels::kQueryHeadsMax) {
    return Wrong("query_heads", absl::StrCat(parameters.query_heads),
                 absl::StrCat("a multiple of ", kv_heads, ", the KV heads of these slices, up to ",
                              kernels::kQueryHeadsMax));
  }
  shape->query_heads = parameters.query_heads;
  shape->slice_query_heads = parameters.query_heads / shape->slices;
  const uint32_t latent = parameters.latent_value_dim;
  if (shape->kv.value_dim != 0 && latent != 0) {
    return Wrong("latent_value_dim", absl::StrCat(latent), "0, as the group stores values");
  }
  if (shape->kv.value_dim == 0 && (latent < 2 || latent % 2 != 0 || latent > shape->kv.key_dim)) {
    return Wrong(
        "latent_value_dim", absl::StrCat(latent),
        absl::StrCat("even and from 2 to ", shape->kv.key_dim, ", as the group stores no values"));
  }
  shape->latent_value_dim = latent;
  shape->output_dim = shape->kv.value_dim == 0 ? latent : shape->kv.value_dim;
  if (shape->OutputRowElements() > kOutputElementsMax) {
    return Wrong("query_heads", absl::StrCat(parameters.query_heads),
                 absl::StrCat("at most ", kOutputElementsMax / shape->output_dim,
                              ", as a row of output has up to ", kOutputElementsMax, " numbers"));
  }
  return absl::OkStatus();
}

absl::Status SetNumbers(const AttendParameters& parameters, AttendShape* shape) {
  const auto dtype = static_cast<kernels::KvDtype>(parameters.row_dtype);
  if (!kernels::IsWideFloat(dtype)) {
    return Wrong("row_dtype", absl::StrCat(parameters.row_dtype),
                 "1 (float16), 2 (bfloat16) or 3 (float32)");
  }
  shape->row_dtype = dtype;
  if (!std::isfinite(parameters.softmax_scale) || parameters.softmax_scale <= 0) {
    return Wrong("softmax_scale", absl::StrCat(parameters.softmax_scale), "finite and above 0");
  }
  shape->softmax_scale = parameters.softmax_scale;
  if (!std::isfinite(parameters.logit_soft_cap) || parameters.logit_soft_cap < 0) {
    return Wrong("logit_soft_cap", absl::StrCat(parameters.logit_soft_cap),
                 "0 (none) or finite and above 0");
  }
  shape->logit_soft_cap = parameters.logit_soft_cap;
  if (parameters.window_tokens > kernels::kKvTokensMax ||
      parameters.sink_tokens > kernels::kKvTokensMax) {
    return Wrong("window_tokens, sink_tokens",
                 absl::StrCat(parameters.window_tokens, ", ", parameters.sink_tokens),
                 absl::StrCat("at most ", kernels::kKvTokensMax));
  }
  if (parameters.window_tokens == 0 && parameters.sink_tokens != 0) {
    return Wrong("sink_tokens", absl::StrCat(parameters.sink_tokens), "0 without a window");
  }
  shape->window_tokens = parameters.window_tokens;
  shape->sink_tokens = parameters.sink_tokens;
  return absl::OkStatus();
}

// Words at once, in lanes of `Lane`: in each, a number is not finite when its exponent is all ones.
template <typename Lane>
bool AllFiniteLanes(const void* elements, uint64_t count, Lane exponent) {
  constexpr uint64_t kOnes = ~uint64_t{0} / static_cast<Lane>(~Lane{0});  // 1 in each lane.
  constexpr uint64_t kTop = kOnes << (8 * sizeof(Lane) - 1);
  const uint64_t exponents = kOnes * exponent;
  const auto* const bytes = static_cast<const unsigned char*>(elements);
  const uint64_t size = count * sizeof(Lane);
  uint64_t finite = kTop;
  uint64_t at = 0;
  for (; at + sizeof(uint64_t) <= size; at += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, bytes + at, sizeof(word));
    // A lane's top bit is set unless its exponent is all ones: nothing carries into the next lane.
    finite &= ((word & exponents) ^ exponents) + (kTop - kOnes);
  }
  uint64_t rest = 0;
  std::memcpy(&rest, bytes + at, size - at);
  finite &= ((rest & exponents) ^ exponents) + (kTop - kOnes);
  return (finite & kTop) == kTop;
}

}  // namespace

uint64_t AttendShape::SegmentOffset(uint32_t i, uint32_t layer) const {
  CAIRN_CHECK(i < slices && layer < layers);
  const std::optional<size_t> part = map->FindPart(group, first_slice + i);
  CAIRN_CHECK(part.has_value());
  return map->parts()[*part].offset + layer * map->parts()[*part].segment_bytes;
}

uint64_t AttendShape::TokenBytes() const {
  return slices * kernels::SegmentOf(kv).bytes / kv.page_tokens;
}

bool SameAttention(const AttendShape& a, const AttendShape& b) {
  // What else there is follows from these.
  return a.map == b.map && a.group == b.group && a.first_slice == b.first_slice &&
         a.slices == b.slices && a.query_heads == b.query_heads && a.row_dtype == b.row_dtype &&
         a.softmax_scale == b.softmax_scale && a.logit_soft_cap == b.logit_soft_cap &&
         a.window_tokens == b.window_tokens && a.sink_tokens == b.sink_tokens &&
         a.latent_value_dim == b.latent_value_dim;
}

absl::StatusOr<AttendShape> MakeAttendShape(const PayloadMap& map,
                                            const AttendParameters& parameters) {
  const Layout& layout = map.layout();
  if (parameters.group >= layout.groups.size()) {
    return Wrong("group", absl::StrCat(parameters.group),
                 absl::StrCat("under ", layout.groups.size(), ", the groups of the layout"));
  }
  const Group& group = layout.groups[parameters.group];
  if (group.dtype == Dtype::kOpaque || group.key_dim == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "group ", parameters.group, ": its elements are opaque or have no keys; fetch its blocks"));
  }
  AttendShape shape;
  shape.map = &map;
  shape.group = parameters.group;
  shape.layers = group.layers;
  const uint32_t slices_of_group = IsSliced(group.kind) ? layout.slices : 1;
  shape.kv.kv_heads = group.kv_heads / slices_of_group;
  shape.kv.page_tokens = layout.block_tokens;
  shape.kv.key_dim = group.key_dim;
  shape.kv.value_dim = group.value_dim;
  shape.kv.dtype = static_cast<kernels::KvDtype>(group.dtype);
  shape.kv.scales = static_cast<kernels::KvScales>(group.scales);
  if (const kernels::Problem problem = kernels::ValidateShape(shape.kv); !problem.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "group ", parameters.group, ": there is no attention over it here: ", problem));
  }
  if (absl::Status status = SetSlices(parameters, slices_of_group, &shape); !status.ok()) {
    return status;
  }
  if (absl::Status status = SetHeads(parameters, &shape); !status.ok()) return status;
  if (absl::Status status = SetNumbers(parameters, &shape); !status.ok()) return status;
  const std::optional<size_t> part = map.FindPart(shape.group, shape.first_slice);
  CAIRN_CHECK(part.has_value() &&
              map.parts()[*part].segment_bytes == kernels::SegmentOf(shape.kv).bytes);
  return shape;
}

absl::Status CheckLayer(const AttendShape& shape, uint32_t layer) {
  if (layer < shape.layers) return absl::OkStatus();
  return Wrong("layer", absl::StrCat(layer),
               absl::StrCat("under ", shape.layers, ", the layers of group ", shape.group));
}

bool AllFinite(kernels::KvDtype dtype, const void* elements, uint64_t count) {
  CAIRN_CHECK(kernels::IsWideFloat(dtype));
  if (count == 0) return true;
  switch (dtype) {
    case kernels::KvDtype::kFloat16:
      return AllFiniteLanes<uint16_t>(elements, count, 0x7c00);
    case kernels::KvDtype::kBfloat16:
      return AllFiniteLanes<uint16_t>(elements, count, 0x7f80);
    default:
      return AllFiniteLanes<uint32_t>(elements, count, 0x7f800000);
  }
}

}  // namespace cairn::node
