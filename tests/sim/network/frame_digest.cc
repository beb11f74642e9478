#include "tests/sim/network/frame_digest.h"

#include <vector>

#include "common/base/check.h"
#include "kernels/byte_hash.h"

namespace cairn::sim {

uint64_t FrameDigest(const grpc::ByteBuffer& frame) {
  std::vector<grpc::Slice> slices;
  CAIRN_CHECK(frame.Dump(&slices).ok());
  kernels::ByteHasher hasher(0);
  for (const grpc::Slice& slice : slices) hasher.Update(slice.begin(), slice.size());
  return hasher.Digest();
}

}  // namespace cairn::sim
