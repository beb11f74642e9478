// GpuKernels: every kernel of the device, given to a stream.
//
// Arguments are checked on the host as far as the host sees them: a problem names the first thing
// that is wrong, and then nothing was given to the stream. All pointers in them are to the
// device's memory and are read when the stream comes to it; the structs themselves are copied.
// Nothing is allocated and nothing waited for, so calls can be captured into a CUDA graph and
// replayed with other contents of the same buffers: page tables, slots, lengths and plans lie in
// device memory. What they say there is held against regions and counts by the kernel: an element
// that does not fit is left out and counted in `refused`, a device word that the caller zeroes and
// reads.
//
// Thread-safe for calls on different streams. Implementations: CudaKernels, EmulatedKernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/append.h"
#include "kernels/block_copy.h"
#include "kernels/device/device.h"
#include "kernels/kv_dtype.h"
#include "kernels/problem.h"

namespace cairn::kernels {

struct GpuAttention;  // kernels/gpu/attention.h

// As AppendTokens. regions, pages, slots, keys.data and values.data are device pointers. Rows and
// strides are multiples of the source's element. `token_count` is the most there may be: slots of
// padding are negative.
struct GpuAppend {
  AppendBatch batch;
  uint32_t* refused = nullptr;  // Tokens; may be null.
};

// As GatherBlocks and ScatterBlocks. regions, places and the tensor's memory are the device's. Rows
// and strides are multiples of the element.
struct GpuBlockCopy {
  BlockCopy copy;                         // place_count: the most there may be.
  const uint64_t* place_count = nullptr;  // On the device, if not null: how many there are.
  uint32_t* refused = nullptr;            // Places; may be null.
};

enum class GpuScales : uint32_t {
  kNone,      // 1 everywhere.
  kGiven,     // One a row.
  kComputed,  // One a row, written: ScaleFor.
};

// rows x row_elements, one row after another. As quantize.h, row by row; numbers are float16,
// bfloat16 or float32, codes of any dtype (row_elements even for int4).
struct GpuQuantize {
  KvDtype source_dtype = KvDtype::kFloat32;
  KvDtype dtype = KvDtype::kFloat8E4m3fn;
  const std::byte* numbers = nullptr;
  std::byte* codes = nullptr;
  float* scales = nullptr;  // [rows]; given ones are finite and not 0.
  GpuScales scale_use = GpuScales::kComputed;
  uint64_t rows = 0;
  uint64_t row_elements = 0;
};

// code * scale, rounded to the target.
struct GpuDequantize {
  KvDtype dtype = KvDtype::kFloat8E4m3fn;
  KvDtype target_dtype = KvDtype::kFloat32;
  const std::byte* codes = nullptr;
  std::byte* numbers = nullptr;
  const float* scales = nullptr;  // [rows]; null: 1.
  uint64_t rows = 0;
  uint64_t row_elements = 0;
};

struct GpuSegment {
  const std::byte* data = nullptr;  // Aligned to 16 bytes.
  uint64_t bytes = 0;
  uint64_t seed = 0;
};

// digests[i] = ByteHash64 of segment i.
struct GpuDigest {
  const GpuSegment* segments = nullptr;  // On the device.
  uint64_t segment_count = 0;            // The most there may be.
  const uint64_t* count = nullptr;       // On the device, if not null: how many there are.
  uint64_t* digests = nullptr;
  uint32_t* refused = nullptr;  // Segments not aligned; may be null.
};

class GpuKernels {
 public:
  virtual ~GpuKernels() = default;

  [[nodiscard]] virtual Problem Attention(const GpuAttention& attention, Stream stream) = 0;
  [[nodiscard]] virtual Problem Append(const GpuAppend& append, Stream stream) = 0;
  [[nodiscard]] virtual Problem Gather(const GpuBlockCopy& copy, Stream stream) = 0;
  [[nodiscard]] virtual Problem Scatter(const GpuBlockCopy& copy, Stream stream) = 0;
  [[nodiscard]] virtual Problem Quantize(const GpuQuantize& quantize, Stream stream) = 0;
  [[nodiscard]] virtual Problem Dequantize(const GpuDequantize& dequantize, Stream stream) = 0;
  [[nodiscard]] virtual Problem DigestSegments(const GpuDigest& digest, Stream stream) = 0;
};

}  // namespace cairn::kernels
