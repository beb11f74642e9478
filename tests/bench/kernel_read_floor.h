// Floors of the kernel suites: reading memory, as fast as this machine can.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/worker_pool.h"
#include "tests/kernels/paged_kv.h"

namespace cairn::bench {

// Reads one layer's segments in the order of the page table, each from its first byte to its last.
void ReadSegments(const kernels::PagedKv& kv, uint64_t layer, kernels::WorkerPool* pool);

// Reads `bytes` at `from`, one byte after another.
void ReadInOrder(const std::byte* from, uint64_t bytes, kernels::WorkerPool* pool);

}  // namespace cairn::bench
