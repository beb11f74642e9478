// What the CPU's kernels take from xxHash and Highway, without them: for the build of this folder
// alone, which has neither.
#include "kernels/attention/portable_tile.h"
#include "kernels/byte_hash.h"
#include "kernels/decode_element.h"
#include "tests/gpu/plain_hash.h"

namespace cairn::kernels {

uint64_t ByteHash64(const void* data, size_t size, uint64_t seed) {
  return gpu_check::PlainHash64(data, size, seed);
}

void PortableDecode(KvDtype dtype, const std::byte* codes, uint64_t count, float* values) {
  for (uint64_t i = 0; i < count; ++i) values[i] = DecodeElement(dtype, codes, i);
}

}  // namespace cairn::kernels
