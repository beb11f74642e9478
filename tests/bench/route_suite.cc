// What a Route call costs: a prompt of 100,000 tokens in blocks of 16, against the hashing of its
// keys alone; and calls of 4,096 tokens over loopback gRPC.
//
// The call is RouterCalls::Route with a message in memory and 128 replicas, on the calling thread:
// tokens to keys, index, policy, booking, speculative marks, the answer as a message. Three
// prompts: `held`, which one holder has whole, `half`, of which one has the first half, and `cold`,
// of which nobody has anything; the figures without such a name are the worst of the three. Floor:
// the chain of the same keys by BlockHasher::Block. Not in the call, and measured beside it: the
// report that ends a booking. The short calls once more by a router that records its decisions
// into a file, as --record-decisions does.
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "cairn/v1/router.grpc.pb.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/random_source.h"
#include "common/identity/block_hasher.h"
#include "common/identity/scope.h"
#include "common/rpc/caller_identity.h"
#include "common/rpc/server_options.h"
#include "common/server/periodic_thread.h"
#include "router/core/router_core.h"
#include "router/decisions/decision_recorder.h"
#include "router/policy/policy_registry.h"
#include "router/service/router.h"
#include "router/service/router_calls.h"
#include "tests/bench/index/index_rig.h"
#include "tests/bench/index/open_loop.h"
#include "tests/bench/suites.h"

namespace cairn::bench {
namespace {

constexpr size_t kHolders = 128;
constexpr uint32_t kShards = 64;
constexpr uint32_t kBlockTokens = 16;
constexpr size_t kLongTokens = 100'000;
constexpr size_t kShortTokens = 4096;
// The fastest of so many counts: a neighbour on the machine disturbed it least.
constexpr int kRounds = 300;
constexpr int kShortRounds = 3000;
constexpr size_t kClients = 4;
constexpr double kRpcSeconds = 3;

std::vector<uint32_t> TokensOf(uint32_t prompt, size_t count) {
  std::vector<uint32_t> tokens(count);
  for (size_t i = 0; i < count; ++i) {
    tokens[i] = static_cast<uint32_t>((i + 1) * 2654435761u) % 128'000 + prompt;
  }
  return tokens;
}

// The keys of the full blocks, by the hasher alone.
void HashKeys(const BlockHasher& hasher, absl::Span<const uint32_t> tokens,
              std::vector<BlockKey>* keys) {
  keys->clear();
  BlockKey parent =
      EnterScope(BenchFingerprint().root(), {.tenant = kBenchTenant, .adapter = {}, .salt = {}});
  for (size_t i = 0; i + kBlockTokens <= tokens.size(); i += kBlockTokens) {
    parent = hasher.Block(parent, tokens.subspan(i, kBlockTokens), {});
    keys->push_back(parent);
  }
}

v1::RouteRequest RequestOf(absl::Span<const uint32_t> tokens) {
  v1::RouteRequest request;
  request.set_fingerprint(std::string(BenchFingerprint().view()));
  v1::Region* region = request.mutable_prompt()->add_regions();
  region->mutable_scope()->set_tenant(kBenchTenant);
  region->mutable_tokens()->Add(tokens.begin(), tokens.end());
  return request;
}

// A router over 128 holders that are in, without threads. Time stands still in it.
class RouteRig {
 public:
  explicit RouteRig(router::DecisionSink* decisions = nullptr) : policies_({}) {
    router::RouterOptions options;
    for (size_t i = 0; i < kHolders; ++i) {
      options.holder_addresses.push_back(absl::StrCat("10.0.0.", i, ":7070"));
    }
    auto core =
        router::RouterCore::Make(options, *router::MakeRoutePolicy(router::kDefaultRoutePolicy, {}),
                                 &clock_, &random_, decisions);
    CAIRN_CHECK_OK(core.status());
    core_ = *std::move(core);
    calls_ = std::make_unique<router::RouterCalls>(router::RouterCalls::Parts{
        .core = core_.get(), .hasher = &hasher_, .policies = &policies_});
    for (size_t i = 0; i < kHolders; ++i) Connect(static_cast<router::HolderIndex>(i));
  }

  void Hold(router::HolderIndex holder, absl::Span<const BlockKey> keys) {
    for (const BlockKey& key : keys) {
      v1::WatchBlocksResponse message = BenchBatch();
      v1::BlockBatch* batch = message.mutable_batch();
      batch->set_shard(key.bytes[0] % kShards);
      batch->set_sequence(++sequences_[holder * kShards + batch->shard()]);
      batch->set_keys(std::string(key.view()));
      batch->set_tier_masks(std::string(1, static_cast<char>(kBenchTier)));
      CAIRN_CHECK_OK(core_->OnFeed(holder, message).status());
    }
  }

  v1::RouteResponse Route(const v1::RouteRequest& request) const {
    v1::RouteResponse response;
    CAIRN_CHECK_OK(calls_->Route(caller_, request, &response));
    return response;
  }
  void End(const v1::RouteResponse& routed) const {
    v1::ReportOutcomeRequest report;
    report.set_booking(routed.booking());
    report.set_router_incarnation(routed.router_incarnation());
    report.set_phase(v1::OUTCOME_PHASE_END);
    v1::ReportOutcomeResponse response;
    CAIRN_CHECK_OK(calls_->ReportOutcome(caller_, report, &response));
    CAIRN_CHECK(response.known());
  }

  const BlockHasher& hasher() const { return hasher_; }

 private:
  void Connect(router::HolderIndex holder) {
    CAIRN_CHECK_OK(core_->OnFeed(holder, BenchHello(holder, kShards)).status());
    CAIRN_CHECK_OK(core_->OnFeed(holder, BenchNamespace(kBlockTokens)).status());
    for (uint32_t shard = 0; shard < kShards; ++shard) {
      v1::WatchBlocksResponse message = BenchBatch();
      message.mutable_batch()->set_shard(shard);
      message.mutable_batch()->set_sequence(++sequences_[holder * kShards + shard]);
      message.mutable_batch()->set_replaces(true);
      CAIRN_CHECK_OK(core_->OnFeed(holder, message).status());
    }
  }

  SystemClock clock_;
  SecureRandom random_;
  Sha256BlockHasher hasher_;
  router::RoutePolicySet policies_;
  std::unique_ptr<router::RouterCore> core_;
  std::unique_ptr<router::RouterCalls> calls_;
  std::vector<uint64_t> sequences_ = std::vector<uint64_t>(kHolders * kShards);
  const Caller caller_ = {.id = "bench", .tenant = kBenchTenant};
};

struct Prompt {
  std::string name;
  size_t held_share_of_8 = 0;
};

void AddLongPrompts(RouteRig* rig, JsonReport* report) {
  double worst_seconds = 0;
  double worst_over_hashing = 0;
  uint32_t number = 1;
  for (const Prompt& prompt : {Prompt{"held", 8}, Prompt{"half", 4}, Prompt{"cold", 0}}) {
    const std::vector<uint32_t> tokens = TokensOf(number, kLongTokens);
    std::vector<BlockKey> keys;
    keys.reserve(kLongTokens / kBlockTokens);
    HashKeys(rig->hasher(), tokens, &keys);
    rig->Hold(static_cast<router::HolderIndex>(number++ * 17),
              absl::MakeConstSpan(keys).first(keys.size() * prompt.held_share_of_8 / 8));
    const v1::RouteRequest request = RequestOf(tokens);
    v1::RouteResponse routed;
    uint64_t matched = 0;
    double route_seconds = 1e9;
    double report_seconds = 1e9;
    double hash_seconds = 1e9;
    for (int round = 0; round < kRounds; ++round) {
      const int64_t began = NowNs();
      routed = rig->Route(request);
      const int64_t routed_at = NowNs();
      rig->End(routed);
      const int64_t ended_at = NowNs();
      HashKeys(rig->hasher(), tokens, &keys);
      hash_seconds = std::min(hash_seconds, static_cast<double>(NowNs() - ended_at) / 1e9);
      report_seconds = std::min(report_seconds, static_cast<double>(ended_at - routed_at) / 1e9);
      route_seconds = std::min(route_seconds, static_cast<double>(routed_at - began) / 1e9);
    }
    for (const v1::TierTokens& tier : routed.replicas(0).matched()) matched += tier.tokens();
    CAIRN_CHECK(matched == keys.size() * prompt.held_share_of_8 / 8 * kBlockTokens);
    report->Add(absl::StrCat("route_100k_tokens_", prompt.name, "_ms"), route_seconds * 1e3);
    report->Add(absl::StrCat("route_over_hashing_", prompt.name), route_seconds / hash_seconds);
    report->Add(absl::StrCat("report_", prompt.name, "_us"), report_seconds * 1e6);
    worst_seconds = std::max(worst_seconds, route_seconds);
    worst_over_hashing = std::max(worst_over_hashing, route_seconds / hash_seconds);
    if (prompt.held_share_of_8 == 0) report->Add("hashing_100k_tokens_ms", hash_seconds * 1e3);
  }
  report->Add("route_100k_tokens_ms", worst_seconds * 1e3);
  report->Add("route_over_hashing", worst_over_hashing);
}

// RouterCalls behind gRPC, without the identities of a real router.
class RouteServer final : public v1::Router::CallbackService {
 public:
  explicit RouteServer(const RouteRig* rig) : rig_(rig) {
    grpc::ServerBuilder builder;
    ApplyServerOptions({}, &builder);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    CAIRN_CHECK(server_ != nullptr);
  }
  ~RouteServer() override { server_->Shutdown(); }

  std::string target() const { return absl::StrCat("127.0.0.1:", port_); }

  grpc::ServerUnaryReactor* Route(grpc::CallbackServerContext* context,
                                  const v1::RouteRequest* request,
                                  v1::RouteResponse* response) override {
    *response = rig_->Route(*request);
    rig_->End(*response);
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  const RouteRig* const rig_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

void AddRpcRate(const RouteRig& rig, const std::string& name, JsonReport* report) {
  RouteServer server(&rig);
  std::vector<std::vector<uint32_t>> times(kClients);
  std::vector<std::thread> clients;
  const int64_t began = NowNs();
  for (size_t client = 0; client < kClients; ++client) {
    clients.emplace_back([&, client] {
      const auto stub = v1::Router::NewStub(
          grpc::CreateChannel(server.target(), grpc::InsecureChannelCredentials()));
      const v1::RouteRequest request =
          RequestOf(TokensOf(static_cast<uint32_t>(client) + 100, kShortTokens));
      while (static_cast<double>(NowNs() - began) / 1e9 < kRpcSeconds) {
        grpc::ClientContext context;
        v1::RouteResponse response;
        const int64_t asked = NowNs();
        CAIRN_CHECK(stub->Route(&context, request, &response).ok());
        times[client].push_back(static_cast<uint32_t>(NowNs() - asked));
      }
    });
  }
  for (std::thread& client : clients) client.join();
  const double seconds = static_cast<double>(NowNs() - began) / 1e9;
  std::vector<uint32_t> all;
  for (const std::vector<uint32_t>& some : times) all.insert(all.end(), some.begin(), some.end());
  report->Add(absl::StrCat(name, "_per_second"), static_cast<double>(all.size()) / seconds);
  report->Add(absl::StrCat(name, "_p50_us"), PercentileUs(all, 0.5));
  report->Add(absl::StrCat(name, "_p99_us"), PercentileUs(all, 0.99));
}

uint32_t CallNs(const RouteRig& rig, const v1::RouteRequest& request) {
  const int64_t began = NowNs();
  const v1::RouteResponse routed = rig.Route(request);
  const int64_t ended = NowNs();
  rig.End(routed);
  return static_cast<uint32_t>(ended - began);
}

// With and without a record in turns; what waits is written in between.
void AddRecordedCalls(const RouteRig& plain, const RouteRig& recorded,
                      router::DecisionRecorder* recorder, JsonReport* report) {
  const v1::RouteRequest request = RequestOf(TokensOf(50, kShortTokens));
  std::vector<uint32_t> plain_ns;
  std::vector<uint32_t> recorded_ns;
  std::vector<uint32_t> written_ns;
  for (int round = 0; round < kShortRounds; ++round) {
    plain_ns.push_back(CallNs(plain, request));
    recorded_ns.push_back(CallNs(recorded, request));
    const int64_t began = NowNs();
    recorder->Flush();
    written_ns.push_back(static_cast<uint32_t>(NowNs() - began));
  }
  const router::DecisionRecorder::Counters counters = recorder->counters();
  CAIRN_CHECK(counters.decisions_recorded == kShortRounds && counters.dropped == 0);
  report->Add("route_4k_tokens_p50_us", PercentileUs(plain_ns, 0.5));
  report->Add("route_4k_tokens_recorded_p50_us", PercentileUs(recorded_ns, 0.5));
  report->Add("decision_written_p50_us", PercentileUs(written_ns, 0.5));
  report->Add("decision_bytes",
              static_cast<double>(counters.bytes) / static_cast<double>(kShortRounds));
}

absl::Status AddRecording(const SuiteOptions& options, const RouteRig& plain, JsonReport* report) {
  const std::filesystem::path parent = options.dir.empty() ? std::filesystem::temp_directory_path()
                                                           : std::filesystem::path(options.dir);
  const std::string dir = parent / absl::StrCat("cairn_route_", getpid());
  std::filesystem::create_directories(dir);
  const absl::Cleanup remove = [&dir] { std::filesystem::remove_all(dir); };
  const SystemClock clock;
  router::DecisionRecorderOptions recording;
  recording.policy = std::string(router::kDefaultRoutePolicy);
  router::DecisionRecorder recorder(
      recording, std::make_unique<router::DecisionFiles>(dir + "/decisions"), &clock);
  if (absl::Status status = recorder.Open(); !status.ok()) return status;
  const RouteRig recorded(&recorder);
  AddRecordedCalls(plain, recorded, &recorder, report);
  const PeriodicThread writer("decisions", router::Router::kRecordInterval,
                              [&recorder] { recorder.Flush(); });
  AddRpcRate(recorded, "route_rpc_recorded", report);
  report->Add("decisions_dropped", static_cast<double>(recorder.counters().dropped));
  return absl::OkStatus();
}

}  // namespace

absl::Status RunRouteSuite(const SuiteOptions& options, JsonReport* report) {
  RouteRig rig;
  AddLongPrompts(&rig, report);
  AddRpcRate(rig, "route_rpc", report);
  return AddRecording(options, rig, report);
}

}  // namespace cairn::bench
