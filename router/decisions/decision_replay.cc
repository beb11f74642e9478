#include "router/decisions/decision_replay.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "router/policy/ranking.h"

namespace cairn::router {
namespace {

// Bookings of which no report was read yet; a router has fewer open.
constexpr size_t kPredictedMax = size_t{1} << 22;

double ScoreOf(const std::vector<RankedChoice>& ranked, size_t replica) {
  for (const RankedChoice& choice : ranked) {
    if (choice.replica == replica) return choice.score;
  }
  CAIRN_CHECK_MSG(false, "a policy left a replica out");
}

}  // namespace

absl::StatusOr<DecisionReplay> DecisionReplay::Make(const Options& options) {
  DecisionReplay replay(options);
  for (const OfPolicy& policy : replay.policies_) {
    if (policy.policy.empty()) continue;
    if (absl::Status status = replay.set_->Find(policy.policy).status(); !status.ok()) {
      return status;
    }
  }
  return replay;
}

DecisionReplay::DecisionReplay(const Options& options)
    : options_(options), set_(std::make_unique<const RoutePolicySet>(options.policy_options)) {
  if (options_.policies.empty()) options_.policies.push_back("");
  for (const std::string& name : options_.policies) policies_.emplace_back().policy = name;
  const absl::StatusOr<const RoutePolicy*> found = set_->Find(kDefaultRoutePolicy);
  CAIRN_CHECK_OK(found.status());
  default_policy_ = *found;
}

bool DecisionReplay::Add(const Decision& decision) {
  CAIRN_CHECK(!decision.ranked.empty());
  const absl::StatusOr<const RoutePolicy*> own = set_->Find(decision.policy);
  for (const OfPolicy& policy : policies_) {
    if (policy.policy.empty() && !own.ok()) return false;
  }
  const std::vector<RankedChoice> by_default = default_policy_->Rank(decision.snapshot);
  const RankedChoice& chosen = decision.ranked.front();
  recorded_.Add(decision, chosen, ScoreOf(by_default, chosen.replica));
  Remember(decision);
  for (OfPolicy& policy : policies_) {
    const RoutePolicy& ranks = policy.policy.empty() ? **own : **set_->Find(policy.policy);
    Compare(decision, ranks, by_default, &policy);
  }
  return true;
}

void DecisionReplay::Compare(const Decision& decision, const RoutePolicy& policy,
                             const std::vector<RankedChoice>& by_default, OfPolicy* out) {
  std::vector<RankedChoice> ranked = policy.Rank(decision.snapshot);
  CAIRN_CHECK(ranked.size() == decision.snapshot.replicas.size());
  const RankedChoice& chosen = ranked.front();
  out->tally.Add(decision, chosen, ScoreOf(by_default, chosen.replica));
  const bool same_choice = chosen.replica == decision.ranked.front().replica;
  if (same_choice) ++out->same_choice;
  // The recorded answer may be shorter: it is what the caller was given.
  CAIRN_CHECK(decision.ranked.size() <= ranked.size());
  const bool same_answer =
      std::equal(decision.ranked.begin(), decision.ranked.end(), ranked.begin());
  if (same_answer) ++out->same_answer;
  const bool same = options_.differences_in_any_bit ? same_answer : same_choice;
  const bool shown = IsShown(decision);
  if (!shown && (same || differences_.size() >= options_.differences_max)) return;
  (shown ? shown_ : differences_)
      .push_back({decision, std::string(policy.name()), std::string(policy.score_unit()),
                  std::move(ranked)});
}

bool DecisionReplay::IsShown(const Decision& decision) const {
  return decision.snapshot.sequence == options_.shown_sequence ||
         decision.booking == options_.shown_booking;
}

void DecisionReplay::Remember(const Decision& decision) {
  if (predicted_.size() >= kPredictedMax) return;
  const size_t index = decision.ranked.front().replica;
  const ReplicaView& replica = decision.snapshot.replicas[index];
  const uint64_t hit = decision.snapshot.prompt_tokens - MissingTokens(decision.snapshot, replica);
  const uint64_t cached =
      hit + std::min(replica.remote_tokens, decision.snapshot.prompt_tokens - hit);
  predicted_[decision.booking] = {.replica = decision.replicas[index], .tokens = cached};
}

// As the ledger counts: the first report with figures; later ones repeat it.
void DecisionReplay::Add(const DecisionOutcome& outcome) {
  const auto found = predicted_.find(outcome.booking);
  if (found == predicted_.end()) {
    ++outcomes_.unmatched;
    return;
  }
  Predicted& predicted = found->second;
  if (!predicted.measured && (outcome.cached_tokens > 0 || outcome.computed_tokens > 0)) {
    predicted.measured = true;
    if (outcome.elsewhere || (outcome.replica != 0 && outcome.replica != predicted.replica)) {
      ++outcomes_.moved;
    } else {
      ++outcomes_.measured;
      outcomes_.predicted_tokens += predicted.tokens;
      outcomes_.delivered_tokens += outcome.cached_tokens;
    }
  }
  if (outcome.phase != OutcomePhase::kEnd) return;
  ++outcomes_.ended;
  predicted_.erase(found);
}

}  // namespace cairn::router
