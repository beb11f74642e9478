#include "common/identity/layout.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/identity/payload_size.h"

namespace cairn {
namespace {

constexpr uint32_t kDtypeLast = static_cast<uint32_t>(Dtype::kInt4);
constexpr uint32_t kScalesLast = static_cast<uint32_t>(ScaleKind::kPerTokenAndHead);
constexpr uint32_t kKindFirst = static_cast<uint32_t>(GroupKind::kFull);
constexpr uint32_t kKindLast = static_cast<uint32_t>(GroupKind::kDraft);

absl::Status Wrong(absl::string_view where, absl::string_view field, uint64_t value,
                   absl::string_view allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat(where, field, " is ", value, "; allowed: ", allowed));
}

absl::Status CheckRange(absl::string_view where, absl::string_view field, uint32_t value,
                        uint32_t least, uint32_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return Wrong(where, field, value, absl::StrCat(least, " to ", most));
}

absl::Status CheckRanges(absl::string_view where, const Group& group) {
  const bool opaque = group.dtype == Dtype::kOpaque;
  const bool has_window =
      group.kind == GroupKind::kSlidingWindow || group.kind == GroupKind::kChunked;
  const struct {
    absl::string_view field;
    uint32_t value, least, most;
  } rules[] = {
      {"required", group.required, 0, 1},
      {"layers", group.layers, 1, kLayersMax},
      {"kv_heads", group.kv_heads, opaque ? 0u : 1u, kKvHeadsMax},
      {"key_dim", group.key_dim, 0, kHeadDimMax},
      {"value_dim", group.value_dim, 0, kHeadDimMax},
      {"dtype", static_cast<uint32_t>(group.dtype), 0, kDtypeLast},
      {"scales", static_cast<uint32_t>(group.scales), 0, kScalesLast},
      {"window_tokens", group.window_tokens, has_window ? 1u : 0u,
       has_window ? kWindowTokensMax : 0u},
      {"state_stride_blocks", group.state_stride_blocks, 0, 0},
      {"opaque_bytes", group.opaque_bytes, opaque ? 1u : 0u, opaque ? kOpaqueBytesMax : 0u},
      {"reserved", group.reserved, 0, 0},
  };
  for (const auto& rule : rules) {
    absl::Status status = CheckRange(where, rule.field, rule.value, rule.least, rule.most);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckHeadsAndDims(absl::string_view where, const Group& group, uint32_t slices) {
  const bool opaque = group.dtype == Dtype::kOpaque;
  if (group.kind == GroupKind::kLatent) {
    if (group.kv_heads > 1) return Wrong(where, "kv_heads", group.kv_heads, "1 for latent");
    if (group.value_dim != 0) return Wrong(where, "value_dim", group.value_dim, "0 for latent");
  }
  if (IsSliced(group.kind) && group.kv_heads % slices != 0) {
    return Wrong(where, "kv_heads", group.kv_heads, absl::StrCat("multiples of slices, ", slices));
  }
  if (!opaque && group.key_dim == 0 && group.value_dim == 0) {
    return Wrong(where, "key_dim", 0,
                 absl::StrCat("1 to ", kHeadDimMax, " where value_dim is 0 too"));
  }
  return absl::OkStatus();
}

absl::Status CheckScales(absl::string_view where, const Group& group) {
  const auto scales = static_cast<uint32_t>(group.scales);
  const bool integer = group.dtype == Dtype::kInt8 || group.dtype == Dtype::kInt4;
  if (integer && group.scales == ScaleKind::kNone) {
    return Wrong(where, "scales", scales, "1 or 2 for int8 and int4");
  }
  if (group.dtype == Dtype::kOpaque && group.scales != ScaleKind::kNone) {
    return Wrong(where, "scales", scales, "0 for opaque");
  }
  return absl::OkStatus();
}

absl::Status CheckGroup(absl::string_view where, const Group& group, uint32_t slices) {
  const auto kind = static_cast<uint32_t>(group.kind);
  absl::Status status = CheckRange(where, "kind", kind, kKindFirst, kKindLast);
  if (!status.ok()) return status;
  if (group.kind == GroupKind::kRecurrentState) {
    return absl::FailedPreconditionError(
        absl::StrCat(where, "kind is ", kind,
                     ", recurrent state, which cannot be registered yet; allowed: 1 to "
                     "4, 6, 7"));
  }
  if (status = CheckRanges(where, group); !status.ok()) return status;
  if (status = CheckHeadsAndDims(where, group, slices); !status.ok()) return status;
  return CheckScales(where, group);
}

// Sums over all groups. No overflow: fields within their bounds keep a segment under 2^48 bytes,
// and each number below is held to its own bound before it is multiplied.
absl::Status CheckTotals(const Layout& layout) {
  uint64_t segments = 0;
  uint64_t bytes = 0;
  for (size_t i = 0; i < layout.groups.size(); ++i) {
    const Group& group = layout.groups[i];
    const uint64_t group_segments = uint64_t{SlicesOf(layout, group)} * group.layers;
    const uint64_t segment_bytes = SegmentBytes(layout, group);
    segments += group_segments;
    if (segments > kBlockSegmentsMax) {
      return Wrong("", "segments of a block", segments, absl::StrCat("up to ", kBlockSegmentsMax));
    }
    if (segment_bytes > kBlockBytesMax) {
      return Wrong(absl::StrCat("groups[", i, "]."), "bytes of a segment", segment_bytes,
                   absl::StrCat("up to ", kBlockBytesMax));
    }
    bytes += group_segments * segment_bytes;
    if (bytes > kBlockBytesMax) {
      return Wrong("", "bytes of a block", bytes, absl::StrCat("up to ", kBlockBytesMax));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateLayout(const Layout& layout) {
  const auto groups = static_cast<uint32_t>(std::min<size_t>(layout.groups.size(), UINT32_MAX));
  const absl::Status heads[] = {
      CheckRange("layout.", "version", layout.version, kLayoutVersion, kLayoutVersion),
      CheckRange("layout.", "block_tokens", layout.block_tokens, 1, kBlockTokensMax),
      CheckRange("layout.", "slices", layout.slices, 1, kSlicesMax),
      CheckRange("layout.", "number of groups", groups, 1, kGroupsMax),
  };
  for (const absl::Status& status : heads) {
    if (!status.ok()) return status;
  }
  bool any_required = false;
  for (size_t i = 0; i < layout.groups.size(); ++i) {
    const std::string where = absl::StrCat("layout.groups[", i, "].");
    absl::Status status = CheckGroup(where, layout.groups[i], layout.slices);
    if (!status.ok()) return status;
    any_required = any_required || layout.groups[i].required == 1;
  }
  if (!any_required) return Wrong("layout.", "number of required groups", 0, "at least 1");
  return CheckTotals(layout);
}

}  // namespace cairn
