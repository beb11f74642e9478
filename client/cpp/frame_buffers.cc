#include "client/cpp/frame_buffers.h"

#include <utility>

#include "common/base/check.h"
#include "common/wire/limits.h"
#include "common/wire/payload_slice.h"

namespace cairn {
namespace {

class Returning final : public PayloadOwner {
 public:
  Returning(std::shared_ptr<FrameBuffers> pool, std::unique_ptr<FrameBuffers::Buffer> buffer)
      : pool_(std::move(pool)), buffer_(std::move(buffer)) {}
  ~Returning() override { pool_->GiveBack(std::move(buffer_)); }

 private:
  std::shared_ptr<FrameBuffers> pool_;
  std::unique_ptr<FrameBuffers::Buffer> buffer_;
};

}  // namespace

std::shared_ptr<FrameBuffers> FrameBuffers::Make(size_t kept_max) {
  return std::shared_ptr<FrameBuffers>(new FrameBuffers(kept_max));
}

std::unique_ptr<FrameBuffers::Buffer> FrameBuffers::Take() {
  {
    absl::MutexLock lock(&mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Buffer> buffer = std::move(idle_.back());
      idle_.pop_back();
      return buffer;
    }
  }
  return std::make_unique<Buffer>(kFramePayloadBytesMax);
}

void FrameBuffers::GiveBack(std::unique_ptr<Buffer> buffer) {
  CAIRN_CHECK(buffer->size() == kFramePayloadBytesMax);
  absl::MutexLock lock(&mutex_);
  if (idle_.size() < kept_max_) idle_.push_back(std::move(buffer));
}

grpc::Slice FrameBuffers::ToSlice(std::unique_ptr<Buffer> buffer, size_t size) {
  CAIRN_CHECK(size <= buffer->size());
  const absl::Span<const uint8_t> bytes(buffer->data(), size);
  return BorrowSlice(bytes, std::make_unique<Returning>(shared_from_this(), std::move(buffer)));
}

}  // namespace cairn
