// Copying a block with its digest in one pass, against memcpy and then hashing what was copied.
//
// Segments of 2 MiB from one half of a working set of 1 GiB into the other, in random order, so
// that neither finds anything in a cache that it did not put there itself.
#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "common/base/check.h"
#include "kernels/byte_hash.h"
#include "kernels/copy_digest.h"
#include "tests/bench/ratio.h"
#include "tests/bench/suites.h"
#include "tests/kernels/paged_kv.h"

namespace cairn::bench {
namespace {

constexpr uint64_t kHalfBytes = uint64_t{512} << 20;
constexpr uint64_t kSegmentBytes = 2 << 20;
constexpr size_t kSegments = kHalfBytes / kSegmentBytes;
constexpr size_t kRoundSegments = 8;

}  // namespace

absl::Status RunCopyDigestSuite(const SuiteOptions&, JsonReport* report) {
  // One page of one head whose keys are the segment: memory as a pool has it.
  kernels::KvShape shape;
  shape.kv_heads = 1;
  shape.page_tokens = 1024;
  shape.key_dim = 1024;
  shape.value_dim = 0;
  shape.dtype = kernels::KvDtype::kBfloat16;
  const kernels::PagedKv from(shape, kHalfBytes / kSegmentBytes, 1, 1);
  const kernels::PagedKv to(shape, kHalfBytes / kSegmentBytes, 1, 2);
  std::memset(const_cast<std::byte*>(from.base()), 0x5a, kHalfBytes);
  std::memset(const_cast<std::byte*>(to.base()), 0x5a, kHalfBytes);

  uint64_t digests = 0;
  size_t next = 0;
  const auto some = [&](const auto& copy) {
    for (size_t i = 0; i < kRoundSegments; ++i, next = (next + 1) % kSegments) {
      digests +=
          copy(to.SegmentOfPage(to.table()[next], 0), from.SegmentOfPage(from.table()[next], 0));
    }
  };
  const auto product = [&] {
    some([](std::byte* out, const std::byte* in) {
      return kernels::CopyAndHash(out, in, kSegmentBytes, 1);
    });
  };
  const auto floor = [&] {
    some([](std::byte* out, const std::byte* in) {
      std::memcpy(out, in, kSegmentBytes);
      return kernels::ByteHash64(out, kSegmentBytes, 1);
    });
  };
  RatioOptions options;
  options.rounds_min = 200;
  options.budget = absl::Seconds(4);
  const RatioResult result = MeasureRatio(product, floor, options);
  CAIRN_CHECK(digests != 0);
  report->Add("copy_digest_over_memcpy_then_hash", result.ratio);
  report->Add("copy_digest_gigabytes_per_second",
              static_cast<double>(kRoundSegments * kSegmentBytes) / result.product_seconds / 1e9);
  report->Add("memcpy_then_hash_gigabytes_per_second",
              static_cast<double>(kRoundSegments * kSegmentBytes) / result.floor_seconds / 1e9);
  return absl::OkStatus();
}

}  // namespace cairn::bench
