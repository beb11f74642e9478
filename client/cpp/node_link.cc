#include "client/cpp/node_link.h"

#include <grpcpp/create_channel.h>

#include <algorithm>

#include "common/base/check.h"

namespace cairn {
namespace {

// Idle megabytes kept for the next writes.
constexpr size_t kFrameBuffersKept = 16;
// A closed connection gives up what it was to send at once.
constexpr absl::Duration kReturnTimeout = absl::Seconds(10);

}  // namespace

NodeLink::NodeLink(const ClientOptions& options, const ClientParts& parts)
    : options_(options),
      runner_(options.retry, parts.clock, parts.random, parts.wait),
      random_(parts.random),
      frame_buffers_(FrameBuffers::Make(kFrameBuffersKept)),
      borrowed_bytes_(BorrowedBytes::Make()) {
  CAIRN_CHECK_OK(ValidateClientOptions(options));
  control_ = v1::CacheNode::NewStub(MakeChannel());
  feed_ = v1::CacheNode::NewStub(MakeChannel());
  for (uint32_t i = 0; i < options.data_channels; ++i) {
    data_.push_back(std::make_unique<grpc::GenericStub>(MakeChannel()));
  }
  if (options.use_local) local_ = std::make_unique<LocalLink>(this, parts.clock);
}

NodeLink::~NodeLink() {
  // Without its channels no call can begin, and connections close.
  data_.clear();
  borrowed_bytes_->AwaitNone(kReturnTimeout);
}

std::shared_ptr<grpc::Channel> NodeLink::MakeChannel() const {
  return grpc::CreateCustomChannel(
      options_.target,
      options_.credentials ? options_.credentials : grpc::InsecureChannelCredentials(),
      MakeChannelArguments(options_.channel));
}

grpc::GenericStub* NodeLink::NextData() {
  return data_[next_data_.fetch_add(1, std::memory_order_relaxed) % data_.size()].get();
}

uint32_t MillisecondsOf(absl::Duration duration, uint32_t max) {
  if (duration <= absl::ZeroDuration()) return 0;
  const int64_t rounded =
      absl::ToInt64Milliseconds(duration + absl::Milliseconds(1) - absl::Nanoseconds(1));
  return static_cast<uint32_t>(std::min<int64_t>(rounded, max));
}

}  // namespace cairn
