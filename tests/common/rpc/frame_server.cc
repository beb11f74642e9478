#include "tests/common/rpc/frame_server.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cairn/v1/cache_node.pb.h"
#include "common/base/check.h"
#include "common/rpc/status_mapping.h"
#include "common/wire/frame_decoder.h"
#include "common/wire/message_codec.h"

namespace cairn::testing {

class FrameServer::WriteReactor final : public grpc::ServerGenericBidiReactor {
 public:
  explicit WriteReactor(FrameServer* server) : server_(server) { StartRead(&request_); }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    const absl::StatusOr<ReceivedFrame> frame = DecodeFrame(FrameKind::kWriteRequest, request_);
    if (!frame.ok()) return Finish(ToGrpcStatus(frame.status()));
    SliceCursor cursor = frame->payload();
    std::string payload(cursor.remaining(), '\0');
    cursor.Copy(reinterpret_cast<uint8_t*>(payload.data()), payload.size());
    server_->AddWritten(std::move(payload));
    response_ = EncodeMessage(v1::WriteResponse());
    StartWrite(&response_);
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    StartRead(&request_);
  }

  void OnDone() override { delete this; }

 private:
  FrameServer* const server_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
};

class FrameServer::GetReactor final : public grpc::ServerGenericBidiReactor {
 public:
  GetReactor(std::vector<grpc::ByteBuffer> frames, grpc::Status status)
      : frames_(std::move(frames)), status_(std::move(status)) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override { ok ? Next() : Finish(grpc::Status::CANCELLED); }
  void OnWriteDone(bool ok) override { ok ? Next() : Finish(grpc::Status::CANCELLED); }
  void OnDone() override { delete this; }

 private:
  void Next() {
    if (at_ == frames_.size()) return Finish(status_);
    StartWrite(&frames_[at_++]);
  }

  std::vector<grpc::ByteBuffer> frames_;
  const grpc::Status status_;
  grpc::ByteBuffer request_;
  size_t at_ = 0;
};

FrameServer::FrameServer(const ServerOptions& options, const std::string& listen) {
  grpc::ServerBuilder builder;
  ApplyServerOptions(options, &builder);
  builder.RegisterCallbackGenericService(this);
  builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &port_);
  server_ = builder.BuildAndStart();
  CAIRN_CHECK(server_ != nullptr && port_ != 0);
}

FrameServer::~FrameServer() {
  server_->Shutdown();
  server_->Wait();
}

std::string FrameServer::address() const { return absl::StrCat("127.0.0.1:", port_); }

void FrameServer::SetGet(std::vector<grpc::ByteBuffer> frames, grpc::Status status) {
  absl::MutexLock lock(&mutex_);
  get_frames_ = std::move(frames);
  get_status_ = std::move(status);
}

std::vector<std::string> FrameServer::written() const {
  absl::MutexLock lock(&mutex_);
  return written_;
}

std::set<std::string> FrameServer::peers() const {
  absl::MutexLock lock(&mutex_);
  return peers_;
}

void FrameServer::AddWritten(std::string payload) {
  absl::MutexLock lock(&mutex_);
  written_.push_back(std::move(payload));
}

grpc::ServerGenericBidiReactor* FrameServer::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  absl::MutexLock lock(&mutex_);
  peers_.insert(context->peer());
  if (context->method() == "/cairn.v1.CacheNode/Write") return new WriteReactor(this);
  CAIRN_CHECK(context->method() == "/cairn.v1.CacheNode/Get");
  return new GetReactor(std::exchange(get_frames_, {}), get_status_);
}

}  // namespace cairn::testing
