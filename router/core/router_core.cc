#include "router/core/router_core.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/give_way.h"
#include "common/rpc/field_status.h"
#include "common/rpc/labels.h"

namespace cairn::router {
namespace {

// Stripes of the index that one tick frees forgotten blocks from: all of them within seconds.
constexpr size_t kStripesPerTick = 32;
// Records of a batch that are taken in before queries get their turn: some 20 microseconds.
constexpr size_t kRecordsUnderLock = 256;
// A booking ends before.
constexpr double kComputeSecondsMax = 24 * 3600;
// As --worker-kv-tokens of a node; what says more says "enough".
constexpr uint64_t kReplicaKvTokensMax = uint64_t{1} << 40;
// Times that a feed lets others run before it goes on, whoever still waits.
constexpr int kGiveWayMost = 4;

absl::Status CheckOptions(const RouterOptions& options) {
  if (!(options.booking.prefill_tokens_per_second_prior > 0)) {
    return absl::InvalidArgumentError("the prior of prefill tokens a second must be above 0");
  }
  if (options.tick_advance_max >= options.feed.degraded_after) {
    return absl::InvalidArgumentError(
        absl::StrCat("tick_advance_max is ", absl::FormatDuration(options.tick_advance_max),
                     "; it must be under degraded_after, which is ",
                     absl::FormatDuration(options.feed.degraded_after)));
  }
  if (options.replicas_per_answer_max == 0) {
    return absl::InvalidArgumentError("replicas_per_answer_max must be above 0");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RouterCore>> RouterCore::Make(const RouterOptions& options,
                                                             std::unique_ptr<RoutePolicy> policy,
                                                             const Clock* clock,
                                                             RandomSource* random,
                                                             DecisionSink* decisions) {
  CAIRN_CHECK(policy != nullptr && clock != nullptr && random != nullptr);
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  absl::StatusOr<HolderRegistry> registry = HolderRegistry::Make(options.holder_addresses);
  if (!registry.ok()) return registry.status();
  return std::unique_ptr<RouterCore>(
      new RouterCore(options, *std::move(registry), std::move(policy), clock, random, decisions));
}

RouterCore::RouterCore(const RouterOptions& options, HolderRegistry registry,
                       std::unique_ptr<RoutePolicy> policy, const Clock* clock,
                       RandomSource* random, DecisionSink* decisions)
    : options_(options),
      policy_(std::move(policy)),
      random_(random),
      decisions_(decisions),
      incarnation_(random->New<Incarnation>()),
      time_(clock, options.tick_advance_max),
      started_at_(time_.Now()),
      partitions_(options.partitions_max),
      namespaces_(registry.holder_count(), options.namespaces_max),
      speculative_(options.speculation, registry.holder_count(), &partitions_),
      blocks_(registry.holder_count(), options.slots_max, &partitions_),
      registry_(std::move(registry)),
      ledger_(options.booking, random),
      sessions_(options.sessions),
      answers_(options.answers_remembered_max, options.answers_remembered_for),
      members_known_(!options.members_to_come) {
  absl::MutexLock lock(&mutex_);
  for (size_t holder = 0; holder < registry_.holder_count(); ++holder) {
    MakePlace(static_cast<HolderIndex>(holder));
  }
}

absl::StatusOr<std::vector<uint32_t>> RouterCore::OnFeed(HolderIndex holder,
                                                         const v1::WatchBlocksResponse& message) {
  const absl::Time now = time_.Now();
  size_t taken = 0;
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      CAIRN_CHECK(holder < feeds_.size());
      if (message.has_hello()) {
        absl::Status status = TakeHello(holder, message.hello(), now);
        if (!status.ok()) return status;
      }
      const absl::StatusOr<bool> done =
          feeds_[holder]->ApplyPiece(message, kRecordsUnderLock, &taken, now);
      if (!done.ok()) return done.status();
      if (*done) return feeds_[holder]->TakeResyncs(now);
    }
    LetQueriesGoFirst();
  }
}

// Whoever lets go of a mutex and takes it again at once mostly gets it, whoever waits.
void RouterCore::LetQueriesGoFirst() const {
  for (int i = 0; i < kGiveWayMost && queries_waiting_.load() > 0; ++i) GiveWay();
}

absl::Status RouterCore::TakeHello(HolderIndex holder, const v1::NodeInfo& hello, absl::Time now) {
  if (absl::Status status = HolderFeed::CheckHello(hello); !status.ok()) return status;
  const absl::Status labels = LabelsFromProto(hello.labels()).status();
  if (!labels.ok()) return InField("the feed's hello", labels);
  const auto lives = [this, now](HolderIndex other) {
    mutex_.AssertReaderHeld();
    return Lives(other, now);
  };
  absl::StatusOr<HolderRegistry::Claimed> claimed = registry_.Claim(holder, hello, lives);
  if (!claimed.ok()) return claimed.status();
  NoteAge(holder, hello, claimed->displaced, now);
  if (claimed->displaced.has_value()) feeds_[*claimed->displaced]->Forget();
  ForgetReplicas(claimed->removed);
  return absl::OkStatus();
}

// Before the hello is applied and the place that the node moved from is forgotten.
void RouterCore::NoteAge(HolderIndex holder, const v1::NodeInfo& hello,
                         std::optional<HolderIndex> moved_from, absl::Time now) {
  const HolderIndex known_at = moved_from.value_or(holder);
  const std::optional<v1::NodeInfo>& known = feeds_[known_at]->node();
  const bool same_run = known.has_value() && known->incarnation() == hello.incarnation();
  if (same_run) {
    notes_[holder].new_since = notes_[known_at].new_since;
  } else {
    notes_[holder].new_since = ready_ ? now : absl::InfinitePast();
  }
}

void RouterCore::OnFeedBroken(HolderIndex holder) {
  absl::MutexLock lock(&mutex_);
  CAIRN_CHECK(holder < feeds_.size());
  feeds_[holder]->Broke();
  notes_[holder].failed_once = true;
}

void RouterCore::Tick() {
  time_.Tick();
  const absl::Time now = time_.Now();
  absl::MutexLock lock(&mutex_);
  for (const BookingId& expired : ledger_.Expire(now)) {
    speculative_.End(expired, /*written=*/false, now);
  }
  speculative_.Expire(now);
  answers_.Expire(now);
  sessions_.Expire(now);
  for (const auto& [id, replica] : registry_.replicas()) {
    if (!Serves(replica.holder, now)) sessions_.Free(id);
  }
  blocks_.Sweep(kStripesPerTick);
  registry_.SettleWorkers([this, now](HolderIndex holder) {
    mutex_.AssertReaderHeld();
    return feeds_[holder]->StateAt(now) == HolderState::kOut;
  });
  DropDeparted(now);
}

absl::StatusOr<bool> RouterCore::ReportOutcome(const OutcomeReport& report) {
  if (!(report.compute_seconds >= 0 && report.compute_seconds <= kComputeSecondsMax)) {
    return absl::InvalidArgumentError(absl::StrCat("compute_seconds is ", report.compute_seconds,
                                                   "; 0 to ", kComputeSecondsMax, " is wanted"));
  }
  const std::optional<Outcome> taken = TakeReport(report);
  if (!taken.has_value()) return false;
  if (decisions_ != nullptr && decisions_->Wants(taken->booking)) {
    decisions_->OnOutcome(
        {.booking = taken->booking,
         .phase = taken->phase,
         .replica = taken->replica.value_or(0),
         .elsewhere = taken->elsewhere,
         .cached_tokens = taken->cached_tokens,
         .computed_tokens = taken->computed_tokens,
         .compute_seconds = taken->compute_seconds,
         .decoded = taken->phase == OutcomePhase::kEnd ? report.decoded : Decoded()});
  }
  return true;
}

std::optional<Outcome> RouterCore::TakeReport(const OutcomeReport& report) {
  const absl::Time now = time_.Now();
  absl::MutexLock lock(&mutex_);
  if (report.router_incarnation != incarnation_) {
    ++reports_of_other_incarnations_;
    return std::nullopt;
  }
  Outcome outcome;
  const auto is_owner = [&](absl::string_view tenant) {
    mutex_.AssertReaderHeld();
    return ledger_.BelongsTo(report.booking, absl::HashOf(tenant));
  };
  const bool foreign = report.tenants.has_value() &&
                       std::none_of(report.tenants->begin(), report.tenants->end(), is_owner);
  outcome.booking = foreign ? BookingId() : report.booking;  // Which never is one.

  outcome.phase = report.phase;
  outcome.cached_tokens = report.cached_tokens;
  outcome.computed_tokens = report.computed_tokens;
  outcome.compute_seconds = report.compute_seconds;
  if (!report.worker_address.empty()) {
    outcome.replica = registry_.FindReplica(report.worker_address);
    outcome.elsewhere = !outcome.replica.has_value();
  }
  const std::optional<ReplicaId> booked = ledger_.ReplicaOf(outcome.booking);
  const bool moved =
      booked.has_value() && !report.worker_address.empty() && outcome.replica != booked;
  if (!ledger_.Report(outcome, now)) return std::nullopt;
  const bool ended = report.phase == OutcomePhase::kEnd;
  if (ended) AddDecoded(report.decoded);
  const bool written = report.cached_tokens + report.computed_tokens > 0;
  if (moved || ended) speculative_.End(outcome.booking, written && !moved, now);
  return outcome;
}

void RouterCore::AddDecoded(const Decoded& decoded) {
  decoded_.output_tokens += decoded.output_tokens;
  decoded_.served_tokens += decoded.served_tokens;
  decoded_.preemptions += decoded.preemptions;
  decoded_.refusals += decoded.refusals;
}

std::vector<ReplicaStatus> RouterCore::ListReplicas() const {
  const absl::Time now = time_.Now();
  absl::MutexLock lock(&mutex_);
  std::vector<ReplicaStatus> replicas;
  for (const auto& [id, replica] : registry_.replicas()) {
    ReplicaStatus status;
    status.worker_address = replica.worker_address;
    status.state = feeds_[replica.holder]->StateAt(now);
    status.node_id = registry_.NodeIdOf(replica.holder);
    if (notes_[replica.holder].held_back) status.drain_state = v1::DRAIN_STATE_DRAINING;
    if (const auto& node = feeds_[replica.holder]->node(); node.has_value()) {
      status.node_addresses.assign(node->addresses().begin(), node->addresses().end());
      status.incarnation = Incarnation::FromBytes(node->incarnation());
      if (!notes_[replica.holder].held_back) status.drain_state = node->drain_state();
      for (const v1::Label& label : node->labels()) {
        status.labels.push_back({label.key(), label.value()});
      }
    }
    status.kv_tokens_max = KvTokensMaxOf(replica.holder);
    status.blocks = blocks_.BlocksOf(replica.holder);
    status.load = ledger_.LoadOf(id);
    status.prefill_tokens_per_second = ledger_.PrefillTokensPerSecond(id);
    const Staleness* staleness = ledger_.StalenessOf(id);
    if (staleness != nullptr) status.stale_share = staleness->RecentShare();
    status.conflict = registry_.ConflictOf(replica.holder);
    replicas.push_back(std::move(status));
  }
  return replicas;
}

std::optional<uint32_t> RouterCore::BlockTokens(const Fingerprint& fingerprint) const {
  absl::MutexLock lock(&mutex_);
  return namespaces_.BlockTokens(fingerprint);
}

std::optional<KeyRules> RouterCore::KeyRulesOf(const Fingerprint& fingerprint) const {
  absl::MutexLock lock(&mutex_);
  return namespaces_.RulesOf(fingerprint);
}

RouterCore::Counters RouterCore::counters() const {
  absl::MutexLock lock(&mutex_);
  const Staleness& staleness = ledger_.staleness();
  return {.routes = routes_,
          .reports_of_other_incarnations = reports_of_other_incarnations_,
          .bookings = ledger_.counters(),
          .predicted_tokens = staleness.predicted_tokens(),
          .delivered_tokens = staleness.delivered_tokens(),
          .decoded = decoded_,
          .stale_alarm = staleness.Alarm(),
          .index_slots = blocks_.slot_count(),
          .speculative_marks = speculative_.mark_count(),
          .sessions = sessions_.size(),
          .deadlines_at_risk = deadlines_at_risk_};
}

HolderState RouterCore::StateOf(HolderIndex holder) const {
  const absl::Time now = time_.Now();
  absl::MutexLock lock(&mutex_);
  CAIRN_CHECK(holder < feeds_.size());
  return feeds_[holder]->StateAt(now);
}

bool RouterCore::Serves(HolderIndex holder, absl::Time now) const {
  const HolderFeed& feed = *feeds_[holder];
  return feed.StateAt(now) != HolderState::kOut && !notes_[holder].held_back &&
         feed.node()->drain_state() != v1::DRAIN_STATE_DRAINING;
}

std::optional<uint64_t> RouterCore::KvTokensMaxOf(HolderIndex holder) const {
  const std::optional<v1::NodeInfo>& node = feeds_[holder]->node();
  if (node.has_value() && node->worker_kv_tokens() > 0) {
    return std::min(node->worker_kv_tokens(), kReplicaKvTokensMax);
  }
  return options_.replica_kv_tokens;
}

bool RouterCore::Lives(HolderIndex holder, absl::Time now) const {
  const HolderState state = feeds_[holder]->StateAt(now);
  return state == HolderState::kExact || state == HolderState::kRecovering;
}

bool RouterCore::AnyHolderIn(absl::Time now) const {
  for (const std::unique_ptr<HolderFeed>& feed : feeds_) {
    if (feed->StateAt(now) != HolderState::kOut) return true;
  }
  return false;
}

}  // namespace cairn::router
