#include "cache_node/decode/sequence/kv_shape_of.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/identity/payload_size.h"

namespace cairn::node {

absl::StatusOr<kernels::KvShape> KvShapeOf(const PayloadMap& map, uint32_t index) {
  CAIRN_CHECK(index < map.layout().groups.size());
  const Group& group = map.layout().groups[index];
  const auto refused = [index](absl::string_view why) {
    return absl::FailedPreconditionError(
        absl::StrCat("nothing can be appended to group ", index, ": ", why));
  };
  if (group.dtype == Dtype::kOpaque) return refused("its rows are opaque");
  if (group.scales == ScaleKind::kPerHead) {
    return refused(
        "its scales are one a head, unknown while a block fills; sequences need scales "
        "none (0) or one a token and head (2)");
  }
  kernels::KvShape shape;
  shape.kv_heads = group.kv_heads / SlicesOf(map.layout(), group);
  shape.page_tokens = map.layout().block_tokens;
  shape.key_dim = group.key_dim;
  shape.value_dim = group.value_dim;
  shape.dtype = static_cast<kernels::KvDtype>(group.dtype);
  shape.scales = static_cast<kernels::KvScales>(group.scales);
  if (const kernels::Problem problem = kernels::ValidateShape(shape); !problem.empty()) {
    return refused(problem);
  }
  CAIRN_CHECK(kernels::SegmentOf(shape).bytes == map.TilesOfGroup(index).segment_bytes);
  return shape;
}

}  // namespace cairn::node
