#include "tests/sim/router/sim_router.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "router/policy/prefix_cost_policy.h"

namespace cairn::sim {
namespace {

std::unique_ptr<router::RouterCore> MakeCore(const World& world, const SimRouterOptions& options,
                                             RandomSource* random) {
  auto core = router::RouterCore::Make(
      options.core, std::make_unique<router::PrefixCostPolicy>(router::PrefixCostOptions{}),
      world.scheduler.clock(), random);
  CAIRN_CHECK_OK(core.status());
  return *std::move(core);
}

}  // namespace

SimRouter::SimRouter(World* world, const SimRouterOptions& options, const Life& life)
    : world_(world),
      host_(options.host),
      life_(life),
      random_(Dice(world->seed, absl::StrCat("router life ", life.number)).Next()),
      core_(MakeCore(*world, options, &random_)),
      calls_({.core = core_.get(), .hasher = &hasher_}),
      unary_(
          &world->network, [this](const UnaryServer::Request& request) { Handle(request); },
          [](StreamId) {}) {
  for (size_t i = 0; i < options.nodes.size(); ++i) {
    followers_.push_back(
        std::make_unique<SimFollower>(world, core_.get(), static_cast<router::HolderIndex>(i),
                                      host_, options.nodes[i], world->seed + life.number));
  }
  Tick();
}

StreamEnd* SimRouter::Accept(StreamId stream, Method method, const Caller& caller) {
  return unary_.Accept(stream, method, caller);
}

void SimRouter::Tick() {
  core_->Tick();
  world_->scheduler.After(kTick, host_, [this] { Tick(); });
}

template <typename Request, typename Response>
void SimRouter::Run(const UnaryServer::Request& asked,
                    absl::Status (router::RouterCalls::*call)(const Caller&, const Request&,
                                                              Response*) const) {
  Request request;
  CAIRN_CHECK(request.ParseFromString(asked.bytes));
  Response response;
  const absl::Status status = (calls_.*call)(asked.caller, request, &response);
  world_->witnesses.OnRouterCall({life_, asked.method, asked.caller, request, status, response});
  unary_.Answer(asked.stream, status, response);
}

void SimRouter::Handle(const UnaryServer::Request& asked) {
  using router::RouterCalls;
  switch (asked.method) {
    case Method::kRoute:
      return Run(asked, &RouterCalls::Route);
    case Method::kLookupPrefix:
      return Run(asked, &RouterCalls::LookupPrefix);
    case Method::kReportOutcome:
      return Run(asked, &RouterCalls::ReportOutcome);
    default:
      CAIRN_CHECK_MSG(false, MethodName(asked.method));
  }
}

}  // namespace cairn::sim
