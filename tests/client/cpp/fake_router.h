// FakeRouter: a router for the tests of workers, on a loopback port. Fake: it ranks as told and
// remembers what it was asked and told. It can be told to fail its next routes.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cairn/v1/router.grpc.pb.h"

namespace cairn::testing {

class FakeRouter final : public v1::Router::Service {
 public:
  FakeRouter();
  ~FakeRouter() override;

  const std::string& target() const { return target_; }
  // Stops serving; calls then find nobody.
  void Stop();

  // Ranks this replica after those before it. Its worker is "worker-N", N from 1; `node` is where
  // its node is.
  void AddReplica(const std::string& node, v1::RouteReason reason = v1::ROUTE_REASON_LOAD);
  // What the next routes end with, one each.
  void FailNextRoutes(const absl::Status& status, int times);

  // How many leading blocks of any prompt some holder has, to LookupPrefix.
  void SetHeldBlocks(uint32_t blocks);

  // 16 times this byte; 'I' at first.
  void SetIncarnation(char of_all_bytes);

  std::vector<v1::RouteRequest> routes() const;
  // What was left until the deadline of the last route when it came.
  absl::Duration last_route_left() const;
  std::vector<v1::LookupPrefixRequest> prefix_lookups() const;
  std::vector<v1::ReportOutcomeRequest> outcomes() const;

 private:
  grpc::Status Route(grpc::ServerContext*, const v1::RouteRequest*, v1::RouteResponse*) override;
  grpc::Status LookupPrefix(grpc::ServerContext*, const v1::LookupPrefixRequest*,
                            v1::LookupPrefixResponse*) override;
  grpc::Status ReportOutcome(grpc::ServerContext*, const v1::ReportOutcomeRequest*,
                             v1::ReportOutcomeResponse*) override;
  grpc::Status ListReplicas(grpc::ServerContext*, const v1::ListReplicasRequest*,
                            v1::ListReplicasResponse*) override;

  mutable absl::Mutex mutex_;
  std::vector<v1::RankedReplica> replicas_ ABSL_GUARDED_BY(mutex_);
  std::vector<absl::Status> failures_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::RouteRequest> routes_ ABSL_GUARDED_BY(mutex_);
  uint32_t held_blocks_ ABSL_GUARDED_BY(mutex_) = 0;
  char incarnation_ ABSL_GUARDED_BY(mutex_) = 'I';
  absl::Duration last_route_left_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::LookupPrefixRequest> prefix_lookups_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::ReportOutcomeRequest> outcomes_ ABSL_GUARDED_BY(mutex_);
  std::string target_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace cairn::testing
