// A gRPC server that speaks frames without a generated class in sight: the other side of the
// loopback tests. Write decodes each frame and answers it with an empty response; Get ignores its
// request and streams what the test gave it.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/rpc/server_options.h"

namespace cairn::testing {

class FrameServer final : public grpc::CallbackGenericService {
 public:
  // Listens on a free port of loopback, or on `listen`.
  explicit FrameServer(const ServerOptions& options = {},
                       const std::string& listen = "127.0.0.1:0");
  ~FrameServer() override;

  int port() const { return port_; }
  std::string address() const;

  // Messages that each later Get streams, and the status it ends with. Before the first call.
  void SetGet(std::vector<grpc::ByteBuffer> frames, grpc::Status status);

  // Payloads of the Write frames so far.
  std::vector<std::string> written() const;

  // Addresses of the clients that called, one a connection.
  std::set<std::string> peers() const;

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

 private:
  class WriteReactor;
  class GetReactor;

  void AddWritten(std::string payload);

  mutable absl::Mutex mutex_;
  std::set<std::string> peers_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> written_ ABSL_GUARDED_BY(mutex_);
  std::vector<grpc::ByteBuffer> get_frames_ ABSL_GUARDED_BY(mutex_);
  grpc::Status get_status_ ABSL_GUARDED_BY(mutex_);
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace cairn::testing
