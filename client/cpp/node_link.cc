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
// Payload comes in frames and reads of these sizes: few, and short enough to be in the cache still
// when they are copied on. Get of 32 MiB over loopback, one core a side: 4.6 GB/s, 3.7 without.
constexpr int kDataFrameBytes = 1 << 20;
constexpr int kDataReadBytes = 256 << 10;

std::shared_ptr<grpc::Channel> MakeChannel(const ClientOptions& options,
                                           const grpc::ChannelArguments& arguments) {
  return grpc::CreateCustomChannel(
      options.target,
      options.credentials ? options.credentials : grpc::InsecureChannelCredentials(), arguments);
}

grpc::ChannelArguments DataArguments(const ClientOptions& options) {
  grpc::ChannelArguments arguments = MakeChannelArguments(options.channel);
  // A fixed window: one that grows with the measured bandwidth lets the node send megabytes ahead,
  // and small calls wait longer beside that (p99 of a lookup beside a get of 2 MiB: 7 to 12 times
  // the idle node's, 3.5 without).
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kDataFrameBytes);
  arguments.SetInt(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kDataReadBytes);
  return arguments;
}

}  // namespace

NodeLink::NodeLink(const ClientOptions& options, const ClientParts& parts)
    : options_(options),
      runner_(options.retry, parts.clock, parts.random, parts.wait),
      random_(parts.random),
      frame_buffers_(FrameBuffers::Make(kFrameBuffersKept)),
      borrowed_bytes_(BorrowedBytes::Make()) {
  CAIRN_CHECK_OK(ValidateClientOptions(options));
  const grpc::ChannelArguments control = MakeChannelArguments(options.channel);
  control_ = v1::CacheNode::NewStub(MakeChannel(options, control));
  feed_ = v1::CacheNode::NewStub(MakeChannel(options, control));
  for (uint32_t i = 0; i < options.data_channels; ++i) {
    data_.push_back(
        std::make_unique<grpc::GenericStub>(MakeChannel(options, DataArguments(options))));
  }
  if (options.use_local) local_ = std::make_unique<LocalLink>(this, parts.clock);
}

NodeLink::~NodeLink() {
  // Without its channels no call can begin, and connections close.
  data_.clear();
  borrowed_bytes_->AwaitNone(kReturnTimeout);
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
