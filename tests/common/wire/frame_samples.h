// Random frames made by the generated classes, and random ways to cut them into slices: shared by
// the codec's property tests and by tests/fuzz.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <random>
#include <string>

#include "absl/strings/string_view.h"
#include "cairn/v1/cache_node.pb.h"
#include "common/wire/frame.h"

namespace cairn::testing {

using Random = std::mt19937_64;

// Uniform in [0, bound).
uint64_t Below(Random& random, uint64_t bound);

// Within the codec's bounds, pieces adding up to the payload; everything else is arbitrary, extreme
// numbers included.
v1::WriteRequest RandomWriteRequest(Random& random);
v1::GetResponse RandomGetResponse(Random& random);

// A serialised random message of `kind`.
std::string RandomFrameBytes(FrameKind kind, Random& random);

// The same in our structs.
FrameHeader HeaderOf(const v1::WriteRequest& message);
FrameHeader HeaderOf(const v1::GetResponse& message);

// `bytes` over slices cut at random, some of them empty, each in a heap block of exactly its size,
// so that a read past its end is seen by the address sanitizer.
grpc::ByteBuffer Scatter(absl::string_view bytes, Random& random);

// All bytes of `buffer`, one after the other.
std::string Flatten(const grpc::ByteBuffer& buffer);

}  // namespace cairn::testing
