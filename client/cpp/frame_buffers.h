// FrameBuffers: reused memory for the payload of frames on their way out.
//
// A buffer goes into a gRPC slice and comes back when gRPC lets go of it, on a thread of gRPC's,
// possibly after the call ended; so the pool outlives its creator through shared ownership with
// each such slice. Reuse saves the page faults of fresh megabytes. Keeps at most `kept_max` idle
// buffers. Thread-safe.
#pragma once

#include <grpcpp/support/slice.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace cairn {

class FrameBuffers : public std::enable_shared_from_this<FrameBuffers> {
 public:
  using Buffer = std::vector<uint8_t>;

  // Shared with the slices that hold its buffers.
  static std::shared_ptr<FrameBuffers> Make(size_t kept_max);

  // kFramePayloadBytesMax bytes of any content.
  std::unique_ptr<Buffer> Take() ABSL_LOCKS_EXCLUDED(mutex_);
  void GiveBack(std::unique_ptr<Buffer> buffer) ABSL_LOCKS_EXCLUDED(mutex_);

  // A slice over the first `size` bytes of `buffer`, which comes back here when gRPC is done.
  grpc::Slice ToSlice(std::unique_ptr<Buffer> buffer, size_t size);

 private:
  explicit FrameBuffers(size_t kept_max) : kept_max_(kept_max) {}

  const size_t kept_max_;
  absl::Mutex mutex_;
  std::vector<std::unique_ptr<Buffer>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn
