#include "common/rpc/namespace_conversion.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn {
namespace {

Group GroupFromProto(const v1::Group& message) {
  Group group;
  group.kind = static_cast<GroupKind>(message.kind());
  group.required = message.required() ? 1 : 0;
  group.layers = message.layers();
  group.kv_heads = message.kv_heads();
  group.key_dim = message.key_dim();
  group.value_dim = message.value_dim();
  group.dtype = static_cast<Dtype>(message.dtype());
  group.scales = static_cast<ScaleKind>(message.scales());
  group.window_tokens = message.window_tokens();
  group.state_stride_blocks = message.state_stride_blocks();
  group.opaque_bytes = message.opaque_bytes();
  return group;
}

void GroupToProto(const Group& group, v1::Group* message) {
  message->set_kind(static_cast<v1::GroupKind>(group.kind));
  message->set_required(group.required != 0);
  message->set_layers(group.layers);
  message->set_kv_heads(group.kv_heads);
  message->set_key_dim(group.key_dim);
  message->set_value_dim(group.value_dim);
  message->set_dtype(static_cast<v1::Dtype>(group.dtype));
  message->set_scales(static_cast<v1::ScaleKind>(group.scales));
  message->set_window_tokens(group.window_tokens);
  message->set_state_stride_blocks(group.state_stride_blocks);
  message->set_opaque_bytes(group.opaque_bytes);
}

}  // namespace

absl::StatusOr<Namespace> NamespaceFromProto(const v1::Namespace& message) {
  Namespace name_space;
  name_space.model = message.model();
  name_space.revision = message.revision();
  name_space.numerics = message.numerics();
  name_space.key_scheme = static_cast<KeyScheme>(message.key_scheme());
  name_space.layout.version = message.layout().version();
  name_space.layout.block_tokens = message.layout().block_tokens();
  name_space.layout.slices = message.layout().slices();
  for (const v1::Group& group : message.layout().groups()) {
    name_space.layout.groups.push_back(GroupFromProto(group));
  }
  if (absl::Status status = ValidateNamespace(name_space); !status.ok()) return status;
  return name_space;
}

v1::Namespace NamespaceToProto(const Namespace& name_space) {
  CAIRN_CHECK_OK(ValidateNamespace(name_space));
  v1::Namespace message;
  message.set_model(name_space.model);
  message.set_revision(name_space.revision);
  message.set_numerics(name_space.numerics);
  message.set_key_scheme(static_cast<uint32_t>(name_space.key_scheme));
  v1::Layout* const layout = message.mutable_layout();
  layout->set_version(name_space.layout.version);
  layout->set_block_tokens(name_space.layout.block_tokens);
  layout->set_slices(name_space.layout.slices);
  for (const Group& group : name_space.layout.groups) GroupToProto(group, layout->add_groups());
  return message;
}

}  // namespace cairn
