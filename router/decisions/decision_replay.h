// DecisionReplay: runs policies over recorded decisions, with the code that the server runs.
//
// Each decision stands for itself: a policy is asked what it would have done in the state that the
// recorded choices led to, not in the one that its own would have led to (for that there is
// `cairn-bench routing`). Deterministic: the snapshots hold all that policies know, random numbers
// too. Not thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "router/decisions/choice_tally.h"
#include "router/decisions/decision.h"
#include "router/policy/policy_registry.h"

namespace cairn::router {

class DecisionReplay {
 public:
  struct Options {
    // By name; empty: the one that decided, for each decision.
    std::vector<std::string> policies = {};
    PrefixCostOptions policy_options = {};
    // Of decisions in which a policy chooses another replica, so many are kept; or of those in
    // which its answer is another in any bit.
    size_t differences_max = 0;
    bool differences_in_any_bit = false;
    // Kept beside these, each policy's answer to it, whether or not it differs: the decision of
    // this place in the run, or of this booking.
    std::optional<uint64_t> shown_sequence = std::nullopt;
    std::optional<BookingId> shown_booking = std::nullopt;
  };
  struct OfPolicy {
    std::string policy;  // Empty: the one that decided.
    ChoiceTally tally;
    // Of its decisions, those with the recorded first choice, and those whose answer is the
    // recorded one bit for bit: order, scores, terms and reasons.
    uint64_t same_choice = 0;
    uint64_t same_answer = 0;
  };
  // One decision, and the whole answer of a policy to it.
  struct Answered {
    Decision decision;
    std::string policy;
    std::string score_unit;
    std::vector<RankedChoice> ranked;
  };
  // What was predicted of decisions and what was reported of them.
  struct Outcomes {
    uint64_t ended = 0;
    uint64_t measured = 0;
    uint64_t predicted_tokens = 0;  // Of those measured where they were sent.
    uint64_t delivered_tokens = 0;
    uint64_t moved = 0;      // Another replica took them.
    uint64_t unmatched = 0;  // Reports whose decision is not in the file, or was ended before.
  };

  // INVALID_ARGUMENT that lists the names, for a policy that there is not.
  static absl::StatusOr<DecisionReplay> Make(const Options& options);

  // False, and nothing is done, where the decision's own policy is asked for and is none of ours.
  bool Add(const Decision& decision);
  void Add(const DecisionOutcome& outcome);

  // What was chosen.
  const ChoiceTally& recorded() const { return recorded_; }
  // In the order of the options.
  const std::vector<OfPolicy>& policies() const { return policies_; }
  const std::vector<Answered>& shown() const { return shown_; }
  const std::vector<Answered>& differences() const { return differences_; }
  const Outcomes& outcomes() const { return outcomes_; }

 private:
  struct Predicted {
    ReplicaId replica = 0;
    uint64_t tokens = 0;
    bool measured = false;
  };

  explicit DecisionReplay(const Options& options);

  void Compare(const Decision& decision, const RoutePolicy& policy,
               const std::vector<RankedChoice>& by_default, OfPolicy* out);
  bool IsShown(const Decision& decision) const;
  void Remember(const Decision& decision);

  Options options_;
  std::unique_ptr<const RoutePolicySet> set_;
  const RoutePolicy* default_policy_ = nullptr;
  ChoiceTally recorded_;
  std::vector<OfPolicy> policies_;
  std::vector<Answered> shown_;
  std::vector<Answered> differences_;
  Outcomes outcomes_;
  absl::flat_hash_map<BookingId, Predicted> predicted_;  // Not ended yet.
};

}  // namespace cairn::router
