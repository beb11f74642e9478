// Layout: the shape of the KV that one block holds, as every process of a namespace must agree on
// it.
//
// Plain values. A Layout from outside is untrusted until ValidateLayout said OK; what computes
// sizes (payload_size.h, payload_map.h) then cannot overflow.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace cairn {

enum class GroupKind : uint32_t {
  kFull = 1,
  kSlidingWindow = 2,
  kChunked = 3,
  kLatent = 4,
  kRecurrentState = 5,  // A number kept for later: not registered yet.
  kIndexer = 6,
  kDraft = 7,
};

enum class Dtype : uint32_t {
  kOpaque = 0,
  kFloat16 = 1,
  kBfloat16 = 2,
  kFloat32 = 3,
  kFloat8E4m3fn = 4,
  kInt8 = 5,
  kInt4 = 6,
};

// One scale is a float32.
enum class ScaleKind : uint32_t {
  kNone = 0,
  kPerHead = 1,
  kPerTokenAndHead = 2,
};

// Layers of one model whose KV has one shape and one rule of reach.
struct Group {
  GroupKind kind = GroupKind::kFull;
  uint32_t required = 1;  // 1: a block is present only with all parts of this group.
  uint32_t layers = 0;
  uint32_t kv_heads = 0;  // Of the whole model, not of one slice.
  uint32_t key_dim = 0;   // 0: no keys.
  uint32_t value_dim = 0;
  Dtype dtype = Dtype::kOpaque;
  ScaleKind scales = ScaleKind::kNone;
  uint32_t window_tokens = 0;
  uint32_t state_stride_blocks = 0;
  uint32_t opaque_bytes = 0;  // A token, layer and slice, for Dtype::kOpaque.
  uint32_t reserved = 0;

  friend bool operator==(const Group&, const Group&) = default;
};

struct Layout {
  uint32_t version = 0;
  uint32_t block_tokens = 0;
  uint32_t slices = 0;  // How many pieces a group is cut into by KV head, in the stored form.
  std::vector<Group> groups;

  friend bool operator==(const Layout&, const Layout&) = default;
};

inline constexpr uint32_t kLayoutVersion = 1;
inline constexpr uint32_t kBlockTokensMax = 1 << 14;
inline constexpr uint32_t kSlicesMax = 1 << 10;
inline constexpr uint32_t kGroupsMax = 64;
inline constexpr uint32_t kLayersMax = 1 << 12;
inline constexpr uint32_t kKvHeadsMax = 1 << 12;
inline constexpr uint32_t kHeadDimMax = 1 << 16;
inline constexpr uint32_t kOpaqueBytesMax = 1 << 24;
inline constexpr uint32_t kWindowTokensMax = 1 << 30;
// Segments in all parts of a block; a commit carries a digest for each.
inline constexpr uint32_t kBlockSegmentsMax = 1 << 16;
// All parts of a block; a block's slot lies within one memory segment, and those are no larger.
inline constexpr uint64_t kBlockBytesMax = uint64_t{256} << 20;

// OK when sizes and meaning of every field are defined. INVALID_ARGUMENT names the first field that
// is wrong, its value and what is allowed; recurrent state is FAILED_PRECONDITION. The rules beyond
// the bounds above:
//  - at least one group, and at least one that is required (else a block is present with no bytes);
//  - kv_heads is a multiple of `slices` for the kinds that are cut (full, sliding, chunked, draft)
//  and
//    at least 1, except that an opaque group, whose size heads do not enter, may say 0;
//  - not both dims 0, unless opaque;
//  - latent: kv_heads 1 and value_dim 0 (an opaque one may say 0 heads), key_dim at least 1 unless
//    opaque;
//  - opaque: opaque_bytes at least 1 and scales 0; others: opaque_bytes 0;
//  - int8 and int4 have scales 1 or 2, since their value is code * scale; any float may have scales
//    0, 1 or 2: "scales 0 go with floats only" forbids none of them, and float8 uses them;
//  - sliding and chunked have a window of at least 1 token, others 0; state_stride_blocks and the
//    reserved field are 0. One shape is thus written, and fingerprinted, in one way.
absl::Status ValidateLayout(const Layout& layout);

// Whether `slices` cuts groups of this kind; the others have one slice whatever it says.
constexpr bool IsSliced(GroupKind kind) {
  return kind != GroupKind::kLatent && kind != GroupKind::kRecurrentState &&
         kind != GroupKind::kIndexer;
}

}  // namespace cairn
