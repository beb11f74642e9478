#include "tests/kernels/paged_kv.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>

#include "kernels/float_formats.h"

namespace cairn::kernels {
namespace {

constexpr uint64_t kPatternBytes = 1 << 20;

template <class Code>
void Put(std::byte* to, Code code) {
  std::memcpy(to, &code, sizeof(code));
}

void PutElement(KvDtype dtype, float value, std::byte* to) {
  switch (dtype) {
    case KvDtype::kFloat16:
      return Put(to, Float16OfFloat(value));
    case KvDtype::kBfloat16:
      return Put(to, Bfloat16OfFloat(value));
    case KvDtype::kFloat32:
      return Put(to, value);
    case KvDtype::kFloat8E4m3fn:
      return Put(to, Float8OfFloat(value));
    case KvDtype::kInt8:
      return Put(to, static_cast<int8_t>(IntegerOfFloat(value * 40, 127)));
    case KvDtype::kInt4:  // Two at once: the second is the first, negated.
      const int32_t code = IntegerOfFloat(value * 3, 7);
      return Put(to, static_cast<uint8_t>((code & 0xf) | (-code & 0xf) << 4));
  }
}

// Codes of integers stand for their value times this, so that dtypes have like values.
float UnitScale(KvDtype dtype) {
  if (dtype == KvDtype::kInt8) return 1.0f / 40;
  if (dtype == KvDtype::kInt4) return 1.0f / 3;
  return 1;
}

}  // namespace

PagedKv::PagedKv(const KvShape& shape, uint64_t pages, uint64_t layers, uint64_t seed)
    : shape_(shape), segment_(kernels::SegmentOf(shape)), layers_(layers) {
  const uint64_t slot_bytes = segment_.bytes * layers;
  region_.bytes = std::max<uint64_t>(slot_bytes * pages, 1);
  void* memory = mmap(nullptr, region_.bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("PagedKv: mmap");
    std::abort();
  }
  madvise(memory, region_.bytes, MADV_HUGEPAGE);
  memory_ = static_cast<std::byte*>(memory);
  region_.base = memory_;
  for (uint64_t i = 0; i < pages; ++i) table_.push_back({0, i * slot_bytes});
  std::shuffle(table_.begin(), table_.end(), std::mt19937_64(seed));
}

PagedKv::~PagedKv() { munmap(memory_, region_.bytes); }

KvRegions PagedKv::Regions(uint64_t layer) const { return {&region_, 1, layer * segment_.bytes}; }

std::byte* PagedKv::SegmentOfPage(const KvPage& page, uint64_t layer) const {
  return memory_ + page.offset + layer * segment_.bytes;
}

std::byte* PagedKv::KeyRow(uint64_t token, uint32_t head, uint64_t layer) const {
  const uint64_t row = uint64_t{head} * shape_.page_tokens + token % shape_.page_tokens;
  return SegmentOfPage(table_[token / shape_.page_tokens], layer) + segment_.key +
         row * RowBytes(shape_.dtype, shape_.key_dim);
}

std::byte* PagedKv::ValueRow(uint64_t token, uint32_t head, uint64_t layer) const {
  const uint64_t row = uint64_t{head} * shape_.page_tokens + token % shape_.page_tokens;
  return SegmentOfPage(table_[token / shape_.page_tokens], layer) + segment_.value +
         row * RowBytes(shape_.dtype, shape_.value_dim);
}

void PagedKv::FillTile(std::byte* tile, uint64_t bytes, uint64_t offset) const {
  while (bytes > 0) {
    const uint64_t at = offset % kPatternBytes;
    const uint64_t run = std::min(bytes, kPatternBytes - at);
    std::memcpy(tile, pattern_.data() + at, run);
    tile += run;
    bytes -= run;
    offset += run;
  }
}

void PagedKv::FillRandom(uint64_t seed, float deviation, uint64_t pages) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0.0f, deviation);
  std::uniform_real_distribution<float> uniform(0.5f, 1.5f);
  const uint64_t element_bytes = std::max<uint64_t>(BitsOf(shape_.dtype) / 8, 1);
  pattern_.resize(kPatternBytes);
  for (uint64_t i = 0; i < kPatternBytes; i += element_bytes) {
    PutElement(shape_.dtype, normal(random), &pattern_[i]);
  }
  const float unit = UnitScale(shape_.dtype);
  for (uint64_t p = 0; p < std::min<uint64_t>(pages, table_.size()); ++p) {
    const KvPage& page = table_[p];
    for (uint64_t layer = 0; layer < layers_; ++layer) {
      std::byte* const at = SegmentOfPage(page, layer);
      for (uint64_t i = 0; i < segment_.key_scales_bytes; i += sizeof(float)) {
        Put(at + segment_.key_scales + i, unit * uniform(random));
      }
      for (uint64_t i = 0; i < segment_.value_scales_bytes; i += sizeof(float)) {
        Put(at + segment_.value_scales + i, 2 * unit * uniform(random));
      }
      // Multiples of 64 bytes, so that elements stay whole.
      FillTile(at + segment_.key, segment_.key_bytes, random() % kPatternBytes / 64 * 64);
      FillTile(at + segment_.value, segment_.value_bytes, random() % kPatternBytes / 64 * 64);
    }
  }
}

}  // namespace cairn::kernels
