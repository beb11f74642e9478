// NodeLink: the connections of one client and how calls are made over them.
//
// What CacheNodeClient and everything it hands out (leases, sessions) share; they borrow it, so it
// outlives them. Thread-safe.
#pragma once

#include <grpcpp/generic/generic_stub.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "cairn/v1/cache_node.grpc.pb.h"
#include "client/cpp/borrowed_bytes.h"
#include "client/cpp/call_runner.h"
#include "client/cpp/client_options.h"
#include "client/cpp/client_parts.h"
#include "client/cpp/frame_buffers.h"
#include "client/cpp/local/local_link.h"
#include "common/base/random_source.h"
#include "common/rpc/status_mapping.h"

namespace cairn {

class NodeLink {
 public:
  // Borrows the parts; they outlive it. REQUIRES: options are valid.
  NodeLink(const ClientOptions& options, const ClientParts& parts);
  // Waits until gRPC has let go of what calls lent it (BorrowedBytes).
  ~NodeLink();

  const ClientOptions& options() const { return options_; }
  const CallRunner& runner() const { return runner_; }
  RandomSource* random() const { return random_; }
  const std::shared_ptr<FrameBuffers>& frame_buffers() const { return frame_buffers_; }
  const std::shared_ptr<BorrowedBytes>& borrowed_bytes() const { return borrowed_bytes_; }

  // Null where the options want none.
  LocalLink* local() const { return local_.get(); }

  v1::CacheNode::Stub* control() const { return control_.get(); }
  v1::CacheNode::Stub* feed() const { return feed_.get(); }
  // Takes turns.
  grpc::GenericStub* NextData();

  template <typename Request, typename Response>
  using Method = grpc::Status (v1::CacheNode::Stub::*)(grpc::ClientContext*, const Request&,
                                                       Response*);

  // One small call, once.
  template <typename Request, typename Response>
  absl::Status CallOnce(Method<Request, Response> method, const Request& request,
                        absl::Duration remaining, Response* response) const {
    grpc::ClientContext context;
    if (options_.metadata != nullptr) options_.metadata->AddTo(&context);
    SetDeadline(remaining, &context);
    return FromGrpcStatus((control_.get()->*method)(&context, request, response));
  }

  // One small call, again as the rules say. A timeout of zero is the default one.
  template <typename Request, typename Response>
  absl::Status Call(Method<Request, Response> method, const Request& request,
                    absl::Duration timeout, const RetryRules& rules, Response* response) const {
    return runner_.Run(ControlTimeout(timeout), rules, [&](const CallRunner::Attempt& attempt) {
      return CallOnce(method, request, attempt.remaining, response);
    });
  }

  absl::Duration ControlTimeout(absl::Duration asked) const {
    return asked > absl::ZeroDuration() ? asked : options_.control_timeout;
  }
  absl::Duration DataTimeout(absl::Duration asked) const {
    return asked > absl::ZeroDuration() ? asked : options_.data_timeout;
  }

 private:
  const ClientOptions options_;
  CallRunner runner_;
  RandomSource* random_;
  // Both shared with slices that outlive a call.
  std::shared_ptr<FrameBuffers> frame_buffers_;
  std::shared_ptr<BorrowedBytes> borrowed_bytes_;
  std::unique_ptr<v1::CacheNode::Stub> control_;
  std::unique_ptr<v1::CacheNode::Stub> feed_;
  std::vector<std::unique_ptr<grpc::GenericStub>> data_;
  std::atomic<uint32_t> next_data_{0};
  std::unique_ptr<LocalLink> local_;
};

// Milliseconds for a field of the contract: rounded up, at most `max`.
uint32_t MillisecondsOf(absl::Duration duration, uint32_t max);

}  // namespace cairn
