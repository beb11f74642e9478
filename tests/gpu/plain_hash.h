// XXH3-64 by the book, for where there is no xxHash: what kernels are held against then. Written
// apart from the kernels, over whole buffers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn::gpu_check {

uint64_t PlainHash64(const void* data, size_t bytes, uint64_t seed);

}  // namespace cairn::gpu_check
