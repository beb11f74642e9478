// WriterDigest: a writer's identity as blocks carry it (Provenance::writer).
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "kernels/byte_hash.h"

namespace cairn::node {

// XXH3-64, seed 0. Never 0, which stands for nobody.
inline uint64_t WriterDigest(absl::string_view identity) {
  const uint64_t digest = kernels::ByteHash64(identity.data(), identity.size(), /*seed=*/0);
  return digest == 0 ? 1 : digest;
}

}  // namespace cairn::node
