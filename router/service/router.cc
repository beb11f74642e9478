#include "router/service/router.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/rpc/server_options.h"
#include "common/server/thread_name.h"
#include "router/policy/policy_registry.h"
#include "router/service/member_sources.h"
#include "router/service/router_method.h"

namespace cairn::router {
namespace {

std::unique_ptr<DecisionRecorder> MakeRecorder(const RouterConfig& config, const Clock* clock,
                                               const LineLog& log) {
  if (config.record_decisions.empty()) return nullptr;
  return std::make_unique<DecisionRecorder>(
      config.RecorderOptions(), std::make_unique<DecisionFiles>(config.record_decisions), clock,
      log);
}

std::unique_ptr<RouterCore> MakeCore(const RouterConfig& config, const Clock* clock,
                                     RandomSource* random, DecisionSink* decisions) {
  // The configuration is valid.
  absl::StatusOr<std::unique_ptr<RoutePolicy>> policy =
      MakeRoutePolicy(config.route_policy, config.PolicyOptions());
  CAIRN_CHECK_OK(policy.status());
  absl::StatusOr<std::unique_ptr<RouterCore>> core =
      RouterCore::Make(config.CoreOptions(), *std::move(policy), clock, random, decisions);
  CAIRN_CHECK_OK(core.status());
  return *std::move(core);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Router>> Router::Start(const RouterConfig& config, Log log) {
  KeepGrpc();
  if (absl::Status status = config.Validate(); !status.ok()) return status;
  if (absl::Status status = MemoryLimitOf(config, "/").status(); !status.ok()) return status;
  absl::StatusOr<std::unique_ptr<ServerSecurity>> security =
      ServerSecurity::Open(config.security, log);
  if (!security.ok()) return security.status();
  absl::StatusOr<std::unique_ptr<ClientSecurity>> node_security =
      ClientSecurity::Open(config.node_security, "node-", log);
  if (!node_security.ok()) return node_security.status();
  std::unique_ptr<Router> router(
      new Router(config, *std::move(security), *std::move(node_security), log));
  router->Follow();
  if (absl::Status status = router->Listen(); !status.ok()) return status;
  // After what else can fail: it moves the file of the run before aside.
  if (absl::Status status = router->Record(); !status.ok()) return status;
  return router;
}

Router::Router(const RouterConfig& config, std::unique_ptr<ServerSecurity> security,
               std::unique_ptr<ClientSecurity> node_security, const Log& log)
    : config_(config),
      log_(log),
      security_(std::move(security)),
      node_security_(std::move(node_security)),
      call_metrics_("cairn_router", kRouterMethodNames, &metrics_, &clock_),
      recorder_(MakeRecorder(config, &clock_, log)),
      core_(MakeCore(config, &clock_, &random_, recorder_.get())),
      followers_(config_.NodesMax(), FollowerOptions(),
                 {.core = core_.get(), .clock = &clock_, .random = &random_, .log = log}),
      members_(MakeMemberSource(config_, &clock_, &random_, log)),
      policies_(config.PolicyOptions()),
      copies_(MakeCopies()),
      replicator_(copies_ == nullptr
                      ? nullptr
                      : std::make_unique<Replicator>(config.CopyOptions(), &clock_, copies_.get())),
      copy_metrics_(replicator_ == nullptr
                        ? nullptr
                        : std::make_unique<ReplicationMetrics>(&metrics_, replicator_.get())),
      calls_({.core = core_.get(),
              .hasher = &hasher_,
              .policies = &policies_,
              .followers = &followers_,
              .members = members_.get(),
              .replicator = replicator_.get(),
              .changing_starts = &changing_starts_,
              .log = log}),
      service_({.calls = &calls_, .callers = &security_->callers(), .metrics = &call_metrics_}),
      file_metrics_(&metrics_, "cairn_router", {security_->files(), node_security_->files()}) {}

std::unique_ptr<NodeCopies> Router::MakeCopies() {
  if (config_.replicate_bytes_per_second.bytes() == 0) return nullptr;
  ClientOptions options;
  options.credentials = node_security_->credentials();
  options.metadata = node_security_->metadata();
  options.channel.tls_name = config_.node_tls_name;
  return std::make_unique<NodeCopies>(options,
                                      ClientParts{&hasher_, &clock_, &random_, &copy_wait_});
}

absl::Status Router::Record() {
  if (recorder_ == nullptr) return absl::OkStatus();
  if (absl::Status status = recorder_->Open(); !status.ok()) {
    return absl::FailedPreconditionError(absl::StrCat("--record-decisions: ", status.message()));
  }
  decision_writer_.emplace("decisions", kRecordInterval, [this] { recorder_->Flush(); });
  return absl::OkStatus();
}

FeedFollower::Options Router::FollowerOptions() const {
  FeedFollower::Options options;
  options.silence_max = config_.feed_silence;
  options.channel.tls_name = config_.node_tls_name;
  options.credentials = node_security_->credentials();
  options.metadata = node_security_->metadata();
  return options;
}

void Router::Follow() {
  router_metrics_.emplace(&metrics_, core_.get(), &followers_, &changing_starts_, members_.get(),
                          recorder_.get());
  if (members_ == nullptr) {
    MemberList listed;
    for (const std::string& node : config_.nodes) listed.push_back({.address = node});
    return followers_.Apply(listed);
  }
  member_thread_ = std::thread([this] {
    NameThisThread("members");
    members_->Run(stop_members_, [this](const MemberList& listed) {
      followers_.Apply(listed);
      core_->MembersKnown();
    });
  });
}

absl::Status Router::Listen() {
  if (!config_.metrics_listen.empty()) {
    absl::StatusOr<std::unique_ptr<MetricsServer>> metrics_server =
        MetricsServer::Start(metrics_, config_.metrics_listen);
    if (!metrics_server.ok()) return metrics_server.status();
    metrics_server_ = *std::move(metrics_server);
  }
  RpcServer::Options options;
  options.listen_addresses = config_.listen;
  options.credentials = security_->credentials();
  options.insecure = config_.security.insecure;
  options.insecure_anywhere = config_.security.insecure_anywhere;
  options.services = {RpcServer::Named<v1::Router>(&service_)};
  options.transport_bytes = config_.TransportBytes().bytes();
  options.configure = [](grpc::ServerBuilder& builder) { ApplyServerOptions({}, &builder); };
  absl::StatusOr<std::unique_ptr<RpcServer>> server = RpcServer::Start(std::move(options));
  if (!server.ok()) return server.status();
  server_ = *std::move(server);
  // Last, since it says that the server is ready.
  ticker_.emplace("ticker", kTick, [this] { Tick(); });
  return absl::OkStatus();
}

Router::~Router() {
  ticker_.reset();
  server_ = nullptr;  // Cancels and awaits all calls.
  copies_ = nullptr;  // It answers the replicator until it is gone.
  decision_writer_.reset();
  if (recorder_ != nullptr) recorder_->Flush();
  metrics_server_ = nullptr;
  router_metrics_.reset();
  stop_members_.Set();
  if (member_thread_.joinable()) member_thread_.join();
  followers_.Stop();
}

std::vector<std::string> Router::addresses() const {
  std::vector<std::string> addresses;
  for (const ListenAddress& address : server_->addresses()) {
    addresses.push_back(address.ToString());
  }
  return addresses;
}

int Router::metrics_port() const {
  return metrics_server_ == nullptr ? 0 : metrics_server_->port();
}

void Router::Tick() {
  core_->Tick();
  if (!said_ready_ && core_->Ready()) {
    said_ready_ = true;
    server_->SetReady(true);
  }
  if (!said_ready_ || said_degraded_ == core_->Degraded()) return;
  said_degraded_ = !said_degraded_;
  if (log_ == nullptr) return;
  log_(said_degraded_ ? "ready, but DEGRADED: nodes or their snapshots are still to come"
                      : "no longer degraded: the nodes' snapshots are in");
}

void Router::Drain() {
  ticker_.reset();  // Nothing says ready again.
  server_->SetReady(false);
  server_->Shutdown(config_.drain_grace);
}

}  // namespace cairn::router
