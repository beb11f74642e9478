// RouterService: the gRPC face of RouterCalls.
//
// Only shells: resolve the caller, run, map the status, count and time. Everything runs on gRPC's
// threads: no call waits for anything but the core's lock. Borrows its parts, which must outlive
// the server.
#pragma once

#include <grpcpp/grpcpp.h>

#include "cairn/v1/router.grpc.pb.h"
#include "common/metrics/call_metrics.h"
#include "common/rpc/caller_resolver.h"
#include "router/service/router_calls.h"
#include "router/service/router_method.h"

namespace cairn::router {

class RouterService final : public v1::Router::CallbackService {
 public:
  struct Parts {
    const RouterCalls* calls = nullptr;
    const CallerResolver* callers = nullptr;
    const CallMetrics* metrics = nullptr;
  };

  explicit RouterService(const Parts& parts) : parts_(parts) {}

  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

  Reactor* Route(Context* context, const v1::RouteRequest* request,
                 v1::RouteResponse* response) override;
  Reactor* LookupPrefix(Context* context, const v1::LookupPrefixRequest* request,
                        v1::LookupPrefixResponse* response) override;
  Reactor* ReportOutcome(Context* context, const v1::ReportOutcomeRequest* request,
                         v1::ReportOutcomeResponse* response) override;
  Reactor* ListReplicas(Context* context, const v1::ListReplicasRequest* request,
                        v1::ListReplicasResponse* response) override;

 private:
  // What one method of RouterCalls does.
  template <typename Request, typename Response>
  using Method = absl::Status (RouterCalls::*)(const Caller&, const Request&, Response*) const;

  template <typename Request, typename Response>
  absl::Status Call(RouterMethod name, const Context& context, Method<Request, Response> method,
                    const Request& request, Response* response) const;
  template <typename Request, typename Response>
  Reactor* Run(RouterMethod name, Context* context, Method<Request, Response> method,
               const Request& request, Response* response) const;

  const Parts parts_;
};

}  // namespace cairn::router
