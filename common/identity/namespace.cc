#include "common/identity/namespace.h"

#include "absl/strings/str_cat.h"
#include "common/identity/frame.h"
#include "common/identity/sha256.h"

namespace cairn {
namespace {

constexpr absl::string_view kDomain = "cairn/namespace/v1";

std::string LayoutBytes(const Layout& layout) {
  std::string out;
  AppendU32(&out, layout.version);
  AppendU32(&out, layout.block_tokens);
  AppendU32(&out, layout.slices);
  AppendU32(&out, static_cast<uint32_t>(layout.groups.size()));
  for (const Group& group : layout.groups) {
    for (uint32_t value :
         {static_cast<uint32_t>(group.kind), group.required, group.layers, group.kv_heads,
          group.key_dim, group.value_dim, static_cast<uint32_t>(group.dtype),
          static_cast<uint32_t>(group.scales), group.window_tokens, group.state_stride_blocks,
          group.opaque_bytes, group.reserved}) {
      AppendU32(&out, value);
    }
  }
  return out;
}

}  // namespace

absl::Status ValidateNamespace(const Namespace& name_space) {
  absl::Status status = ValidateStringField("namespace.model", name_space.model);
  if (!status.ok()) return status;
  status = ValidateStringField("namespace.revision", name_space.revision);
  if (!status.ok()) return status;
  status = ValidateRawField("namespace.numerics", name_space.numerics);
  if (!status.ok()) return status;
  if (name_space.key_scheme != KeyScheme::kCairn && name_space.key_scheme != KeyScheme::kExternal) {
    return absl::InvalidArgumentError(absl::StrCat("namespace.key_scheme is ",
                                                   static_cast<uint32_t>(name_space.key_scheme),
                                                   "; allowed: 1 (cairn), 2 (external)"));
  }
  return ValidateLayout(name_space.layout);
}

absl::StatusOr<Fingerprint> FingerprintOf(const Namespace& name_space) {
  absl::Status status = ValidateNamespace(name_space);
  if (!status.ok()) return status;
  std::string key_scheme;
  AppendU32(&key_scheme, static_cast<uint32_t>(name_space.key_scheme));
  std::string message(kDomain);
  AppendFramed(&message, 1, name_space.model);
  AppendFramed(&message, 2, name_space.revision);
  AppendFramed(&message, 3, name_space.numerics);
  AppendFramed(&message, 4, key_scheme);
  AppendFramed(&message, 5, LayoutBytes(name_space.layout));
  return Fingerprint{Sha256(message)};
}

}  // namespace cairn
