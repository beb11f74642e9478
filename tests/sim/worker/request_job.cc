#include "tests/sim/worker/request_job.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/rpc/id_conversion.h"

namespace cairn::sim {
namespace {

constexpr absl::Duration kRouteTimeout = absl::Seconds(2);
constexpr absl::Duration kReportTimeout = absl::Seconds(1);
// An engine that is told to stop gives up what it reserved.
constexpr uint32_t kAbortsChance = 150;

bool IsGone(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsCancelled(status);
}

uint32_t RanksOf(const ClientSide& side, const SimPrompt& prompt) {
  const uint32_t slices = prompt.name_space().payload_map().layout().slices;
  return static_cast<uint32_t>(side.dice->Between(1, slices));
}

}  // namespace

RequestJob::RequestJob(const ClientSide& side, Fleet* fleet, const SimPrompt* prompt, Done done)
    : context_{side, prompt, RanksOf(side, *prompt), {}},
      fleet_(fleet),
      began_at_(side.world->scheduler.Now()),
      done_(std::move(done)) {
  context_.memory.resize(block_count() * prompt->name_space().block_bytes());
  outcome_.blocks = block_count();
  Route();
}

void RequestJob::Route() {
  const Prompt& prompt = context_.prompt->prompt();
  v1::RouteRequest request;
  request.set_fingerprint(std::string(context_.prompt->name_space().fingerprint().view()));
  request.mutable_prompt()->set_keys(KeysToProto(prompt.keys()));
  request.set_prompt_tokens(prompt.token_count());
  request.set_output_tokens(static_cast<uint32_t>(context_.side.dice->Between(10, 100)));
  request.set_request_id(context_.NewRequestId());
  call_ = std::make_unique<UnaryCall>(
      context_.side, fleet_->router, Method::kRoute, request.SerializeAsString(), kRouteTimeout,
      [this](const absl::StatusOr<std::string>& answer) { TakeRoute(answer); });
}

void RequestJob::TakeRoute(const absl::StatusOr<std::string>& answer) {
  if (answer.ok()) {
    CAIRN_CHECK(route_.ParseFromString(*answer));
    outcome_.routed = booked_ = true;
    for (const v1::TierTokens& tier : route_.replicas(0).matched()) {
      outcome_.matched_tokens += tier.tokens();
    }
  }
  ReadNext();
}

void RequestJob::ReadNext() {
  for (; next_replica_ < route_.replicas_size(); ++next_replica_) {
    const v1::RankedReplica& replica = route_.replicas(next_replica_);
    if (replica.node_addresses().empty() || replica.reason() == v1::ROUTE_REASON_HOLDER_OUT) {
      ++outcome_.fallbacks;
      continue;
    }
    replica_ = next_replica_++;
    fetch_ = std::make_unique<PrefixFetch>(&context_,
                                           fleet_->node_by_address.at(replica.node_addresses(0)));
    fetch_->Run(block_count(), [this](const absl::Status& status) { TakeRead(status); });
    return;
  }
  // A worker without its cache still works.
  replica_ = -1;
  fetch_ = nullptr;
  Compute();
}

void RequestJob::TakeRead(const absl::Status& status) {
  // With something in hand the request stays here: it would be lost elsewhere.
  if (IsGone(status) && fetch_->usable_blocks() == 0) {
    ++outcome_.fallbacks;
    return ReadNext();
  }
  outcome_.cached = true;
  if (fetch_->usable_blocks() == block_count()) return Compute();
  Reserve();
}

void RequestJob::Reserve() {
  const HostId node = fleet_->node_by_address.at(route_.replicas(replica_).node_addresses(0));
  store_ = std::make_unique<SuffixStore>(&context_, node);
  store_->Reserve(fetch_->usable_blocks(), block_count(), !fetch_->namespace_known(),
                  [this](const absl::Status& status) { TakeReserve(status); });
}

void RequestJob::TakeReserve(const absl::Status& status) {
  outcome_.stored.Update(status);
  // What others have in hand; not past our own blocks, which are in progress too.
  if (status.ok() && !stored_again_ && fetch_->usable_blocks() < store_->first_reserved()) {
    return fetch_->Run(store_->first_reserved(), [this](const absl::Status&) { Compute(); });
  }
  if (stored_again_) return Store();
  Compute();
}

void RequestJob::Compute() {
  const size_t usable = fetch_ == nullptr ? 0 : fetch_->usable_blocks();
  outcome_.hit_blocks = usable;
  const uint64_t tokens = context_.prompt->prompt().token_count() -
                          usable * context_.prompt->name_space().block_tokens();
  const std::string worker =
      route_.replicas().empty() ? "" : route_.replicas(std::max(replica_, 0)).worker_address();
  absl::Time& until = fleet_->computes_until[worker];
  computed_for_ = absl::Seconds(static_cast<double>(tokens) / fleet_->tokens_per_second);
  until = std::max(until, scheduler().Now()) + computed_for_;
  scheduler().At(until, context_.side.host, alive_.Guard([this] {
    Report(v1::OUTCOME_PHASE_FIRST_TOKEN, [this] { Store(); });
  }));
}

void RequestJob::Store() {
  if (store_ == nullptr || !store_->reserved_anything()) return EndLeases();
  if (!context_.side.world->weather.calm() && context_.side.dice->Chance(kAbortsChance)) {
    store_->Abort();
    return EndLeases();
  }
  store_->Write([this](const absl::Status& status) { TakeStore(status); });
}

void RequestJob::TakeStore(const absl::Status& status) {
  outcome_.stored.Update(status);
  const size_t end = absl::IsAborted(status) ? block_count() : store_->first_reserved();
  // What others had in hand and did not bring, and what expired here while it was computed.
  if (IsGone(status) || stored_again_ || fetch_->usable_blocks() >= end) {
    if (!status.ok()) store_->Abort();
    return EndLeases();
  }
  stored_again_ = true;
  Reserve();
}

void RequestJob::EndLeases() {
  const auto report = [this] { Report(v1::OUTCOME_PHASE_END, [this] { End(); }); };
  if (fetch_ == nullptr) return report();
  fetch_->EndLeases([report](const absl::Status&) { report(); });
}

void RequestJob::Report(v1::OutcomePhase phase, std::function<void()> then) {
  if (!booked_) {
    scheduler().After(absl::ZeroDuration(), context_.side.host, alive_.Guard(std::move(then)));
    return;
  }
  const uint64_t cached = outcome_.hit_blocks * context_.prompt->name_space().block_tokens();
  v1::ReportOutcomeRequest request;
  request.set_booking(route_.booking());
  request.set_router_incarnation(route_.router_incarnation());
  request.set_phase(phase);
  if (replica_ > 0) request.set_worker_address(route_.replicas(replica_).worker_address());
  request.set_cached_tokens(cached);
  request.set_computed_tokens(context_.prompt->prompt().token_count() - cached);
  request.set_compute_seconds(absl::ToDoubleSeconds(computed_for_));
  call_ = std::make_unique<UnaryCall>(
      context_.side, fleet_->router, Method::kReportOutcome, request.SerializeAsString(),
      kReportTimeout, [then = std::move(then)](const absl::StatusOr<std::string>&) { then(); });
}

void RequestJob::End() {
  const Done done = std::move(done_);
  done(outcome_);
}

}  // namespace cairn::sim
