// RequestHash: what stands for a request in RequestMemory: its method and all that it says.
#pragma once

#include <google/protobuf/message_lite.h>

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "kernels/byte_hash.h"

namespace cairn::node {

inline uint64_t RequestHash(absl::string_view method,
                            const google::protobuf::MessageLite& request) {
  const std::string body = request.SerializeAsString();
  const uint64_t seed = kernels::ByteHash64(method.data(), method.size(), 0);
  return kernels::ByteHash64(body.data(), body.size(), seed);
}

}  // namespace cairn::node
