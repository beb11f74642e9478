#include "tests/client/cpp/fake_router.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/bytes16.h"
#include "common/base/check.h"
#include "common/rpc/status_mapping.h"

namespace cairn::testing {
FakeRouter::FakeRouter() {
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  CAIRN_CHECK(server_ != nullptr && port != 0);
  target_ = absl::StrCat("127.0.0.1:", port);
}

FakeRouter::~FakeRouter() { Stop(); }

void FakeRouter::Stop() { server_->Shutdown(); }

void FakeRouter::AddReplica(const std::string& node, v1::RouteReason reason) {
  absl::MutexLock lock(&mutex_);
  v1::RankedReplica replica;
  replica.set_worker_address(absl::StrCat("worker-", replicas_.size() + 1));
  replica.set_node_id(absl::StrCat("node-", replicas_.size() + 1));
  replica.add_node_addresses(node);
  replica.set_reason(reason);
  replicas_.push_back(replica);
}

void FakeRouter::FailNextRoutes(const absl::Status& status, int times) {
  absl::MutexLock lock(&mutex_);
  failures_.insert(failures_.end(), static_cast<size_t>(times), status);
}

void FakeRouter::SetHeldBlocks(uint32_t blocks) {
  absl::MutexLock lock(&mutex_);
  held_blocks_ = blocks;
}

void FakeRouter::SetIncarnation(char of_all_bytes) {
  absl::MutexLock lock(&mutex_);
  incarnation_ = of_all_bytes;
}

std::vector<v1::LookupPrefixRequest> FakeRouter::prefix_lookups() const {
  absl::MutexLock lock(&mutex_);
  return prefix_lookups_;
}

std::vector<v1::RouteRequest> FakeRouter::routes() const {
  absl::MutexLock lock(&mutex_);
  return routes_;
}

std::vector<v1::ReportOutcomeRequest> FakeRouter::outcomes() const {
  absl::MutexLock lock(&mutex_);
  return outcomes_;
}

absl::Duration FakeRouter::last_route_left() const {
  absl::MutexLock lock(&mutex_);
  return last_route_left_;
}

grpc::Status FakeRouter::Route(grpc::ServerContext* context, const v1::RouteRequest* request,
                               v1::RouteResponse* response) {
  absl::MutexLock lock(&mutex_);
  last_route_left_ = absl::FromChrono(context->deadline()) - absl::Now();
  routes_.push_back(*request);
  if (!failures_.empty()) {
    const absl::Status status = failures_.front();
    failures_.erase(failures_.begin());
    return ToGrpcStatus(status);
  }
  response->mutable_replicas()->Add(replicas_.begin(), replicas_.end());
  response->set_booking(std::string(16, static_cast<char>('A' + routes_.size() % 26)));
  response->set_router_incarnation(std::string(16, incarnation_));
  return grpc::Status::OK;
}

grpc::Status FakeRouter::LookupPrefix(grpc::ServerContext*, const v1::LookupPrefixRequest* request,
                                      v1::LookupPrefixResponse* response) {
  absl::MutexLock lock(&mutex_);
  prefix_lookups_.push_back(*request);
  const auto total = static_cast<uint32_t>(request->prompt().keys().size() / kKeyBytes);
  response->set_namespace_known(true);
  response->set_blocks_total(total);
  if (held_blocks_ > 0) response->add_holders()->set_blocks(std::min(total, held_blocks_));
  return grpc::Status::OK;
}

grpc::Status FakeRouter::ReportOutcome(grpc::ServerContext*,
                                       const v1::ReportOutcomeRequest* request,
                                       v1::ReportOutcomeResponse* response) {
  absl::MutexLock lock(&mutex_);
  outcomes_.push_back(*request);
  response->set_known(true);
  return grpc::Status::OK;
}

grpc::Status FakeRouter::ListReplicas(grpc::ServerContext*, const v1::ListReplicasRequest*,
                                      v1::ListReplicasResponse* response) {
  absl::MutexLock lock(&mutex_);
  for (const v1::RankedReplica& replica : replicas_) {
    v1::ReplicaInfo* info = response->add_replicas();
    info->set_worker_address(replica.worker_address());
    info->set_node_id(replica.node_id());
    *info->mutable_node_addresses() = replica.node_addresses();
    info->set_state(v1::HOLDER_STATE_EXACT);
  }
  response->set_router_incarnation(std::string(16, incarnation_));
  response->set_ready(true);
  return grpc::Status::OK;
}

}  // namespace cairn::testing
