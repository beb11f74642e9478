#include "common/wire/slice_cursor.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"

namespace cairn {

SliceCursor::SliceCursor(absl::Span<const grpc::Slice> slices) : slices_(slices) {
  for (const grpc::Slice& slice : slices) remaining_ += slice.size();
}

void SliceCursor::Truncate(size_t size) {
  CAIRN_CHECK(size <= remaining_);
  remaining_ = size;
}

absl::Span<const uint8_t> SliceCursor::Next(size_t size_max) {
  if (remaining_ == 0) return {};
  while (offset_ == slices_.front().size()) {
    slices_.remove_prefix(1);
    offset_ = 0;
    CAIRN_CHECK(!slices_.empty());
  }
  const grpc::Slice& slice = slices_.front();
  const size_t size = std::min({size_max, remaining_, slice.size() - offset_});
  const absl::Span<const uint8_t> run(slice.begin() + offset_, size);
  offset_ += size;
  remaining_ -= size;
  return run;
}

void SliceCursor::Skip(size_t size) {
  CAIRN_CHECK(size <= remaining_);
  while (size > 0) size -= Next(size).size();
}

void SliceCursor::Copy(uint8_t* out, size_t size) {
  CAIRN_CHECK(size <= remaining_);
  while (size > 0) {
    const absl::Span<const uint8_t> run = Next(size);
    std::memcpy(out, run.data(), run.size());
    out += run.size();
    size -= run.size();
  }
}

}  // namespace cairn
