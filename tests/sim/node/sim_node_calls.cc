// SimNode: calls with one answer, through the product's NodeCalls.
#include <utility>

#include "cache_node/service/store_messages.h"
#include "common/base/check.h"
#include "tests/sim/node/sim_node.h"

namespace cairn::sim {

template <typename Request, typename Response>
void SimNode::Run(const UnaryServer::Request& asked,
                  absl::Status (node::NodeCalls::*call)(const Caller&, const Request&, Response*)) {
  Request request;
  CAIRN_CHECK(request.ParseFromString(asked.bytes));
  Response response;
  Caller caller = asked.caller;
  absl::Status status;
  Request changed = request;
  if (mutation_->BeforeCall(asked.method, &caller, &changed)) {
    status = (calls_.*call)(caller, changed, &response);
  }
  Conclude(asked.stream, asked.method, asked.caller, request, std::move(status), &response);
}

void SimNode::Conclude(StreamId stream, Method method, const Caller& caller,
                       const google::protobuf::Message& request, absl::Status status,
                       google::protobuf::Message* response) {
  mutation_->AfterCall(method, request, &status, response);
  world_->witnesses.OnNodeCall({parts_.life, method, caller, request, status, *response});
  unary_.Answer(stream, status, *response);
}

void SimNode::Handle(UnaryServer::Request asked) {
  using node::NodeCalls;
  switch (asked.method) {
    case Method::kRegisterNamespace:
      return Run(asked, &NodeCalls::RegisterNamespace);
    case Method::kRetireNamespace:
      return Run(asked, &NodeCalls::RetireNamespace);
    case Method::kClearScope:
      return Run(asked, &NodeCalls::ClearScope);
    case Method::kLookup:
      return HandleLookup(asked);
    case Method::kGetLease:
      return HandleGetLease(asked);
    case Method::kRenewLease:
      return Run(asked, &NodeCalls::RenewLease);
    case Method::kEndLease:
      return Run(asked, &NodeCalls::EndLease);
    case Method::kReserve:
      return Run(asked, &NodeCalls::Reserve);
    case Method::kCommit:
      return Run(asked, &NodeCalls::Commit);
    case Method::kAbort:
      return Run(asked, &NodeCalls::Abort);
    case Method::kReportMismatch:
      return Run(asked, &NodeCalls::ReportMismatch);
    case Method::kDelete:
      return Run(asked, &NodeCalls::Delete);
    default:
      CAIRN_CHECK_MSG(false, MethodName(asked.method));
  }
}

void SimNode::HandleLookup(const UnaryServer::Request& asked) {
  v1::LookupRequest request;
  CAIRN_CHECK(request.ParseFromString(asked.bytes));
  v1::LookupResponse response;
  Caller caller = asked.caller;
  v1::LookupRequest changed = request;
  CAIRN_CHECK(mutation_->BeforeCall(asked.method, &caller, &changed));
  absl::StatusOr<std::optional<node::NodeCalls::PendingLookup>> pending =
      calls_.BeginLookup(caller, changed, &response);
  if (!pending.ok() || !pending->has_value()) {
    return Conclude(asked.stream, asked.method, asked.caller, request, pending.status(), &response);
  }
  const absl::Time deadline = world_->scheduler.Now() + (*pending)->plan.wait;
  waiting_.emplace(asked.stream,
                   WaitingLookup{asked.caller, std::move(request), **std::move(pending), deadline});
  SweepLookups();
}

// Without a wait.
void SimNode::HandleGetLease(const UnaryServer::Request& asked) {
  v1::GetLeaseRequest request;
  CAIRN_CHECK(request.ParseFromString(asked.bytes));
  v1::GetLeaseResponse response;
  const absl::StatusOr<LeaseId> lease = calls_.BeginGetLease(request);
  absl::Status status = lease.status();
  if (lease.ok()) status = *calls_.TryGetLease(asked.caller, *lease, /*last=*/true, &response);
  Conclude(asked.stream, asked.method, asked.caller, request, std::move(status), &response);
}

void SimNode::SweepLookups() {
  sweep_is_coming_ = false;
  const absl::Time now = world_->scheduler.Now();
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    WaitingLookup& waiting = it->second;
    v1::LookupResponse response;
    if (!calls_.TryLookup(waiting.lookup, /*last=*/now >= waiting.deadline, &response)) {
      ++it;
      continue;
    }
    const StreamId stream = it->first;
    const Caller caller = waiting.caller;
    const v1::LookupRequest request = std::move(waiting.request);
    it = waiting_.erase(it);
    Conclude(stream, Method::kLookup, caller, request, absl::OkStatus(), &response);
  }
}

}  // namespace cairn::sim
