#include "client/replay/replay_namespace.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn::replay {
namespace {

constexpr uint64_t kElementBytes = 2;  // bfloat16.

Namespace WithDims(uint32_t block_tokens, uint64_t key_dim, uint64_t value_dim) {
  const Group group{.kind = GroupKind::kFull,
                    .required = 1,
                    .layers = 1,
                    .kv_heads = 1,
                    .key_dim = static_cast<uint32_t>(key_dim),
                    .value_dim = static_cast<uint32_t>(value_dim),
                    .dtype = Dtype::kBfloat16};
  return {
      .model = "cairn-replay",
      .revision = "1",
      .numerics = "",
      .key_scheme = KeyScheme::kCairn,
      .layout = {
          .version = kLayoutVersion, .block_tokens = block_tokens, .slices = 1, .groups = {group}}};
}

}  // namespace

absl::StatusOr<NamespaceHandle> MakeReplayNamespace(uint32_t block_tokens, uint64_t block_bytes) {
  if (block_tokens < 1 || block_tokens > kBlockTokensMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("blocks of ", block_tokens, " tokens; they have 1 to ", kBlockTokensMax));
  }
  const uint64_t dim_bytes = block_tokens * kElementBytes;
  const uint64_t dims = block_bytes / dim_bytes;
  const uint64_t dims_max = std::min<uint64_t>(2 * kHeadDimMax, kBlockBytesMax / dim_bytes);
  if (dims < 1 || dims > dims_max) {
    return absl::InvalidArgumentError(absl::StrCat("blocks of ", block_bytes, " bytes: with ",
                                                   block_tokens, " tokens they have ", dim_bytes,
                                                   " to ", dims_max * dim_bytes));
  }
  // A node binds a name to one namespace, and may see replays of several sizes.
  const std::string name = absl::StrCat("replay-", block_tokens, "x", block_bytes);
  absl::StatusOr<NamespaceHandle> handle =
      NamespaceHandle::Make(name, WithDims(block_tokens, dims - dims / 2, dims / 2));
  // Where padding gets in the way, keys alone may fit.
  if (handle.ok() && handle->block_bytes() != block_bytes && dims <= kHeadDimMax) {
    handle = NamespaceHandle::Make(name, WithDims(block_tokens, dims, 0));
  }
  if (!handle.ok()) return handle.status();
  if (handle->block_bytes() == block_bytes) return handle;
  return absl::InvalidArgumentError(absl::StrCat(
      "blocks of ", block_bytes, " bytes cannot be made of ", block_tokens,
      " tokens, each a number of 2-byte elements, in tiles of whole 64 bytes; the nearest is ",
      handle->block_bytes()));
}

}  // namespace cairn::replay
