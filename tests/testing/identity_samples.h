// Small valid namespaces and layouts for tests to bend.
#pragma once

#include "common/identity/namespace.h"

namespace cairn::testing {

// One full-attention bfloat16 group: 2 layers, 8 heads of 16.
inline Group SampleGroup() {
  return {.kind = GroupKind::kFull,
          .required = 1,
          .layers = 2,
          .kv_heads = 8,
          .key_dim = 16,
          .value_dim = 16,
          .dtype = Dtype::kBfloat16};
}

// Blocks of 16 tokens, one slice, one SampleGroup.
inline Layout SampleLayout() {
  return {.version = 1, .block_tokens = 16, .slices = 1, .groups = {SampleGroup()}};
}

inline Namespace SampleNamespace() {
  return {.model = "model",
          .revision = "sha256:00",
          .numerics = "",
          .key_scheme = KeyScheme::kCairn,
          .layout = SampleLayout()};
}

}  // namespace cairn::testing
