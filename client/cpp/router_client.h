// RouterClient: everything that a worker or gateway asks of a router, or of several alike.
//
// Every call has a deadline, and each is safe to repeat: Route under the same request id, the
// others as they are. They are repeated when the router cannot be reached or knows no replica yet,
// within their deadline (retry_policy.h). Failures are the contract's codes: INVALID_ARGUMENT for
// what is wrong in the call, RESOURCE_EXHAUSTED at the router's bound of bookings, UNAVAILABLE when
// no router or no replica is there, DEADLINE_EXCEEDED; INTERNAL when the answer breaks the
// contract. A prefix that nobody has is no error, and neither is a booking that is over.
//
// Of several routers it asks one until that does not answer, then the next; each client begins with
// one by chance. What is reported goes to the router that booked it, as long as it answers. A
// router that hangs costs a call a quarter of its deadline.
//
// Thread-safe. Calls block the caller. It talks to no cache node: client/cpp/cache_node_client.h
// does, at the addresses that are answered here.
#pragma once

#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cairn/v1/router.grpc.pb.h"
#include "client/cpp/call_runner.h"
#include "client/cpp/client_parts.h"
#include "client/cpp/namespace_handle.h"
#include "client/cpp/prompt.h"
#include "client/cpp/retry_policy.h"
#include "client/cpp/route_types.h"
#include "common/rpc/channel_options.h"
#include "common/security/call_metadata.h"

namespace cairn {

// In one client's list.
inline constexpr size_t kRoutersMax = 64;

struct RouterClientOptions {
  // host:port, or unix:/path; several, separated by commas, where any of them will do.
  std::string target = "127.0.0.1:7080";
  // Null: no TLS, for routers on loopback that were told to be insecure. (gRPC shares credentials.)
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  // As in ClientOptions.
  const CallMetadata* metadata = nullptr;
  // Deadline of calls that are not given one of their own.
  absl::Duration timeout = absl::Seconds(5);
  RetryOptions retry;
  ChannelOptions channel;
};

// INVALID_ARGUMENT naming the option that is out of its range.
absl::Status ValidateRouterClientOptions(const RouterClientOptions& options);

class RouterClient {
 public:
  // Borrows the parts; they outlive it. REQUIRES: ValidateRouterClientOptions says OK.
  RouterClient(const RouterClientOptions& options, const ClientParts& parts);

  RouterClient(const RouterClient&) = delete;
  RouterClient& operator=(const RouterClient&) = delete;

  // Ranks the replicas for the prompt and books the first. The booking ends by ReportOutcome, or by
  // itself after minutes.
  absl::StatusOr<RouteAnswer> Route(const NamespaceHandle& name_space, const Prompt& prompt,
                                    const RouteOptions& options = {});

  // What each holder has of the prompt's full blocks. A timeout of zero is the default one.
  absl::StatusOr<PrefixAnswer> LookupPrefix(const NamespaceHandle& name_space, const Prompt& prompt,
                                            absl::Duration timeout = {});

  // Whether this run of the router still had the booking.
  absl::StatusOr<bool> ReportOutcome(const RouteOutcome& outcome);

  absl::StatusOr<ReplicaList> ListReplicas(absl::Duration timeout = {});

 private:
  template <typename Request, typename Response>
  using Method = grpc::Status (v1::Router::Stub::*)(grpc::ClientContext*, const Request&,
                                                    Response*);
  struct Target {
    std::string address;
    std::unique_ptr<v1::Router::Stub> stub;
  };

  // `incarnation`: of the router to begin with, where it is known; else the one asked last.
  template <typename Request, typename Response>
  absl::Status Call(Method<Request, Response> method, const Request& request,
                    absl::Duration timeout, Response* response, absl::string_view incarnation = {})
      ABSL_LOCKS_EXCLUDED(mutex_);
  size_t Begin(absl::string_view incarnation) const ABSL_LOCKS_EXCLUDED(mutex_);
  // It does not answer: from now on the next one is asked first.
  void NoteGone(size_t target) ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteIncarnation(size_t target, const std::string& incarnation) ABSL_LOCKS_EXCLUDED(mutex_);

  const RouterClientOptions options_;
  CallRunner runner_;
  RandomSource* random_;
  mutable absl::Mutex mutex_;
  std::vector<Target> targets_;
  // Of each target's last answer; empty before.
  std::vector<std::string> incarnations_ ABSL_GUARDED_BY(mutex_);
  size_t current_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace cairn
