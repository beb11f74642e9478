// FrameDigest: a digest of all bytes of a frame where they lie now. Two digests that differ say
// that the memory under a frame changed.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>

namespace cairn::sim {

uint64_t FrameDigest(const grpc::ByteBuffer& frame);

}  // namespace cairn::sim
