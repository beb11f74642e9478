#include "tests/bench/kernel_read_floor.h"

#include <cstring>

namespace cairn::bench {
namespace {

constexpr uint32_t kPartsOfWorker = 8;

// Sixty-four bytes as the compiler likes to hold them: the widest registers of the target.
typedef uint64_t Line __attribute__((vector_size(64)));

volatile uint64_t g_sink;  // So that no read is dropped.

// Several chains, so that reads do not wait for each other.
#if defined(__x86_64__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
uint64_t
SumOf(const std::byte* from, uint64_t bytes) {
  Line a = {}, b = {}, c = {}, d = {};
  for (uint64_t i = 0; i + 4 * sizeof(Line) <= bytes; i += 4 * sizeof(Line)) {
    const Line* const lines = reinterpret_cast<const Line*>(from + i);
    a ^= lines[0];
    b ^= lines[1];
    c ^= lines[2];
    d ^= lines[3];
  }
  a ^= b ^ c ^ d;
  return a[0] ^ a[1] ^ a[2] ^ a[3] ^ a[4] ^ a[5] ^ a[6] ^ a[7];
}

struct Segments {
  const kernels::PagedKv* kv;
  uint64_t layer;
  uint32_t parts;
};

void ReadSegmentsPart(void* context, uint32_t index) {
  const Segments& work = *static_cast<const Segments*>(context);
  const auto& table = work.kv->table();
  uint64_t sum = 0;
  for (uint64_t i = table.size() * index / work.parts; i < table.size() * (index + 1) / work.parts;
       ++i) {
    sum ^= SumOf(work.kv->SegmentOfPage(table[i], work.layer), work.kv->segment().bytes);
  }
  g_sink = sum;
}

struct Bytes {
  const std::byte* from;
  uint64_t part_bytes;
};

void ReadBytesPart(void* context, uint32_t index) {
  const Bytes& work = *static_cast<const Bytes*>(context);
  g_sink = SumOf(work.from + index * work.part_bytes, work.part_bytes);
}

}  // namespace

void ReadSegments(const kernels::PagedKv& kv, uint64_t layer, kernels::WorkerPool* pool) {
  Segments work = {&kv, layer, pool->workers() * kPartsOfWorker};
  pool->Run(work.parts, ReadSegmentsPart, &work);
}

void ReadInOrder(const std::byte* from, uint64_t bytes, kernels::WorkerPool* pool) {
  const uint32_t parts = pool->workers() * kPartsOfWorker;
  Bytes work = {from, bytes / parts / 256 * 256};
  pool->Run(parts, ReadBytesPart, &work);
}

}  // namespace cairn::bench
