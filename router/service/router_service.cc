#include "router/service/router_service.h"

#include "absl/strings/str_cat.h"
#include "common/rpc/status_mapping.h"

namespace cairn::router {

template <typename Request, typename Response>
absl::Status RouterService::Call(RouterMethod name, const Context& context,
                                 Method<Request, Response> method, const Request& request,
                                 Response* response) const {
  // Nobody would report on what is booked now.
  if (context.IsCancelled()) return absl::CancelledError("the client is gone");
  const absl::StatusOr<Caller> caller = parts_.callers->Resolve(
      context, absl::StrCat("Router/", kRouterMethodNames[static_cast<size_t>(name)]));
  if (!caller.ok()) return caller.status();
  return (parts_.calls->*method)(*caller, request, response);
}

template <typename Request, typename Response>
grpc::ServerUnaryReactor* RouterService::Run(RouterMethod name, Context* context,
                                             Method<Request, Response> method,
                                             const Request& request, Response* response) const {
  CallMetrics::Call counted = parts_.metrics->Begin(static_cast<size_t>(name));
  const absl::Status status = Call(name, *context, method, request, response);
  counted.End(status.code());
  Reactor* const reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

grpc::ServerUnaryReactor* RouterService::Route(Context* context, const v1::RouteRequest* request,
                                               v1::RouteResponse* response) {
  return Run(RouterMethod::kRoute, context, &RouterCalls::Route, *request, response);
}

grpc::ServerUnaryReactor* RouterService::LookupPrefix(Context* context,
                                                      const v1::LookupPrefixRequest* request,
                                                      v1::LookupPrefixResponse* response) {
  return Run(RouterMethod::kLookupPrefix, context, &RouterCalls::LookupPrefix, *request, response);
}

grpc::ServerUnaryReactor* RouterService::ReportOutcome(Context* context,
                                                       const v1::ReportOutcomeRequest* request,
                                                       v1::ReportOutcomeResponse* response) {
  return Run(RouterMethod::kReportOutcome, context, &RouterCalls::ReportOutcome, *request,
             response);
}

grpc::ServerUnaryReactor* RouterService::ListReplicas(Context* context,
                                                      const v1::ListReplicasRequest* request,
                                                      v1::ListReplicasResponse* response) {
  return Run(RouterMethod::kListReplicas, context, &RouterCalls::ListReplicas, *request, response);
}

}  // namespace cairn::router
