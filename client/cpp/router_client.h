// RouterClient: everything that a worker or gateway asks of one router.
//
// Every call has a deadline, and each is safe to repeat: Route under the same request id, the
// others as they are. They are repeated when the router cannot be reached or knows no replica yet,
// within their deadline (retry_policy.h). Failures are the contract's codes: INVALID_ARGUMENT for
// what is wrong in the call, RESOURCE_EXHAUSTED at the router's bound of bookings, UNAVAILABLE when
// no router or no replica is there, DEADLINE_EXCEEDED; INTERNAL when the answer breaks the
// contract. A prefix that nobody has is no error, and neither is a booking that is over.
//
// Thread-safe. Calls block the caller. It talks to no cache node: client/cpp/cache_node_client.h
// does, at the addresses that are answered here.
#pragma once

#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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

struct RouterClientOptions {
  // host:port, or unix:/path.
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
  template <typename Request, typename Response>
  absl::Status Call(Method<Request, Response> method, const Request& request,
                    absl::Duration timeout, Response* response);

  const RouterClientOptions options_;
  CallRunner runner_;
  RandomSource* random_;
  std::unique_ptr<v1::Router::Stub> stub_;
};

}  // namespace cairn
