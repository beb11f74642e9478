// The part of RouterCore that answers for prompts.
#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/identity/rendezvous.h"
#include "common/rpc/caller_identity.h"
#include "common/rpc/error_reason.h"
#include "common/wire/route_limits.h"
#include "router/core/replica_filter.h"
#include "router/core/router_core.h"

namespace cairn::router {
namespace {

uint64_t DigestOf(const RouteQuery& query) {
  if (query.request_digest != 0) return query.request_digest;
  return absl::HashOf(query.tenant, query.fingerprint, query.prompt_tokens, query.output_tokens,
                      query.keys, query.session, query.required_labels, query.preferred_labels,
                      query.excluded_workers, query.deadline.value_or(absl::ZeroDuration()));
}

MatchedTokens TokensOf(const PrefixMatch& match, uint32_t block_tokens) {
  MatchedTokens tokens;
  for (size_t tier = 0; tier < kTierCount; ++tier) {
    tokens.fed[tier] = uint64_t{match.fed[tier]} * block_tokens;
  }
  tokens.coming = uint64_t{match.speculative} * block_tokens;
  return tokens;
}

absl::string_view HostOf(const v1::NodeInfo& node) {
  if (node.addresses().empty()) return "";
  const absl::string_view address = node.addresses(0);
  return address.substr(0, address.rfind(':'));
}

}  // namespace

RouterCore::Matches RouterCore::MatchPrompt(absl::string_view tenant,
                                            const Fingerprint& fingerprint,
                                            absl::Span<const BlockKey> keys,
                                            const SpeculativeBlocks* speculative,
                                            absl::Time now) const {
  Matches matches;
  const ReadablePartitions partitions = {partitions_.Find(fingerprint, tenant),
                                         partitions_.Find(fingerprint, kPublicTenant)};
  std::vector<bool> usable(feeds_.size());
  for (size_t i = 0; i < feeds_.size(); ++i) {
    const auto holder = static_cast<HolderIndex>(i);
    usable[i] =
        feeds_[i]->StateAt(now) != HolderState::kOut && !namespaces_.RetiredAt(holder, fingerprint);
  }
  matches.block_tokens = namespaces_.BlockTokens(fingerprint).value_or(0);
  if (matches.block_tokens == 0) keys = {};
  matches.by_holder = blocks_.Match(keys, partitions, usable, speculative);
  return matches;
}

ReplicaView RouterCore::ViewOf(const Matches& matches, absl::Time now, Candidate* candidate) const {
  const Replica& replica = *candidate->replica;
  const ReplicaLoad load = ledger_.LoadOf(candidate->id);
  ReplicaView view;
  view.stable_hash = replica.stable_hash;
  view.available = Serves(replica.holder, now);
  view.holder_state = feeds_[replica.holder]->StateAt(now);
  const Staleness* staleness = ledger_.StalenessOf(candidate->id);
  if (staleness != nullptr) view.stale_share = staleness->CautiousShare();
  if (const absl::Time since = notes_[replica.holder].new_since; since != absl::InfinitePast()) {
    // A hello that was taken in while this waited for the lock is of a later time.
    view.age_seconds = std::max(0.0, absl::ToDoubleSeconds(now - since));
  }
  view.queued_prefill_tokens = load.prefill_tokens;
  view.running_kv_tokens = load.kv_tokens;
  view.requests = load.requests;
  view.kv_tokens_max = KvTokensMaxOf(replica.holder);
  view.prefill_tokens_per_second = ledger_.PrefillTokensPerSecond(candidate->id);
  if (!view.available) return view;
  const MatchedTokens own = TokensOf(matches.by_holder[replica.holder], matches.block_tokens);
  view.own_tokens = own.fed;
  view.coming_tokens = own.coming;
  SeekRemote(matches, now, candidate, &view);
  return view;
}

// The holder with the most blocks; of equals, one on the same host. What a request is about to
// write there cannot be read yet.
void RouterCore::SeekRemote(const Matches& matches, absl::Time now, Candidate* candidate,
                            ReplicaView* view) const {
  if (options_.remote_tokens_per_second <= 0 && options_.same_host_tokens_per_second <= 0) return;
  const HolderIndex own = candidate->replica->holder;
  const absl::string_view own_host = HostOf(*feeds_[own]->node());
  uint32_t most = matches.by_holder[own].blocks;
  for (size_t i = 0; i < feeds_.size(); ++i) {
    const PrefixMatch& match = matches.by_holder[i];
    const uint32_t readable = match.blocks - match.speculative;
    if (i == own || readable <= matches.by_holder[own].blocks || readable < most) continue;
    if (feeds_[i]->StateAt(now) == HolderState::kOut) continue;
    const bool same_host = !own_host.empty() && HostOf(*feeds_[i]->node()) == own_host;
    const double rate =
        same_host ? options_.same_host_tokens_per_second : options_.remote_tokens_per_second;
    if (rate <= 0 || (readable == most && rate <= view->remote_tokens_per_second)) continue;
    most = readable;
    candidate->remote = static_cast<HolderIndex>(i);
    view->remote_tokens_per_second = rate;
  }
  view->remote_tokens = uint64_t{most - matches.by_holder[own].blocks} * matches.block_tokens;
}

RankedReplica RouterCore::Describe(const Candidate& candidate, const ReplicaView& view,
                                   const RankedChoice& choice) const {
  const HolderIndex holder = candidate.replica->holder;
  RankedReplica ranked;
  ranked.worker_address = candidate.replica->worker_address;
  ranked.node_id = registry_.NodeIdOf(holder);
  if (const auto& node = feeds_[holder]->node(); node.has_value()) {
    ranked.node_addresses.assign(node->addresses().begin(), node->addresses().end());
  }
  ranked.matched = {view.own_tokens, view.coming_tokens};
  if (candidate.remote.has_value()) {
    ranked.remote_tokens = view.remote_tokens;
    ranked.remote_node_id = registry_.NodeIdOf(*candidate.remote);
  }
  ranked.holder_state = view.holder_state;
  ranked.score = choice.score;
  ranked.terms = choice.terms;
  ranked.reason = choice.reason;
  return ranked;
}

absl::StatusOr<RouteAnswer> RouterCore::Route(const RouteQuery& query) {
  std::optional<Decision> decision;
  absl::StatusOr<RouteAnswer> answer = Decide(query, &decision);
  if (decision.has_value()) decisions_->OnDecision(*std::move(decision));
  return answer;
}

absl::StatusOr<RouteAnswer> RouterCore::Decide(const RouteQuery& query,
                                               std::optional<Decision>* decision) {
  const absl::Time now = time_.Now();
  const uint64_t digest = query.request_id.empty() ? 0 : DigestOf(query);
  queries_waiting_.fetch_add(1);
  absl::MutexLock lock(&mutex_);
  queries_waiting_.fetch_sub(1);
  if (!query.request_id.empty()) {
    const absl::StatusOr<const RouteAnswer*> known =
        answers_.Find(query.caller, query.request_id, digest);
    if (!known.ok()) return known.status();
    if (*known != nullptr) return **known;
  }
  const Matches matches =
      MatchPrompt(query.tenant, query.fingerprint, query.keys, &speculative_, now);
  const uint64_t block_tokens_total = query.keys.size() * uint64_t{matches.block_tokens};
  const uint64_t prompt_tokens =
      query.prompt_tokens == 0 ? block_tokens_total : query.prompt_tokens;
  if (prompt_tokens < block_tokens_total) {
    return absl::InvalidArgumentError(
        absl::StrCat("prompt_tokens is ", prompt_tokens, ", less than the ", block_tokens_total,
                     " tokens of ", query.keys.size(), " blocks of ", matches.block_tokens));
  }
  if (prompt_tokens > kPromptTokensMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the prompt has ", prompt_tokens, " tokens in ", query.keys.size(), " blocks of ",
        matches.block_tokens, "; at most ", kPromptTokensMax, " are routed"));
  }
  absl::StatusOr<RouteAnswer> answer = RouteAnew(query, prompt_tokens, matches, now, decision);
  if (answer.ok() && !query.request_id.empty()) {
    answers_.Remember(query.caller, query.request_id, digest, *answer, now);
  }
  return answer;
}

absl::StatusOr<std::vector<RouterCore::Candidate>> RouterCore::CandidatesFor(
    const RouteQuery& query) const {
  if (registry_.replicas().empty()) {
    return absl::UnavailableError("no replica is known yet: no cache node has been heard of");
  }
  std::vector<Candidate> candidates;
  std::vector<const v1::NodeInfo*> nodes;
  size_t labelled = 0;
  for (const auto& [id, replica] : registry_.replicas()) {
    const std::optional<v1::NodeInfo>& node = feeds_[replica.holder]->node();
    if (node.has_value()) nodes.push_back(&*node);
    if (!HasLabels(node, query.required_labels)) continue;
    ++labelled;
    if (IsExcluded(replica.worker_address, query.excluded_workers)) continue;
    candidates.push_back({id, &replica, std::nullopt});
  }
  if (labelled == 0) return NoneHasLabels(query.required_labels, nodes);
  if (candidates.empty()) {
    return WithReason(absl::UnavailableError(absl::StrCat(
                          "excluded_workers: all ", labelled, " replicas",
                          query.required_labels.empty() ? "" : " with the required labels",
                          " are excluded; ask again without some of them")),
                      kAllReplicasExcluded);
  }
  return candidates;
}

RouteSnapshot RouterCore::SnapshotFor(const RouteQuery& query, uint64_t prompt_tokens,
                                      const Matches& matches, absl::Time now,
                                      std::vector<Candidate>* candidates) const {
  std::optional<ReplicaId> session;
  if (!query.session.empty()) session = sessions_.Find(query.tenant, query.session, now);
  RouteSnapshot snapshot;
  for (Candidate& candidate : *candidates) {
    ReplicaView view = ViewOf(matches, now, &candidate);
    view.session_here = view.available && candidate.id == session;
    view.lacking_label_seconds =
        LackingLabelSeconds(feeds_[candidate.replica->holder]->node(), query.preferred_labels);
    snapshot.replicas.push_back(std::move(view));
  }
  snapshot.prompt_tokens = prompt_tokens;
  snapshot.output_tokens = query.output_tokens;
  snapshot.block_tokens = matches.block_tokens;
  snapshot.sequence = routes_;
  snapshot.transfer = options_.transfer;
  if (!query.keys.empty()) snapshot.prefix_hash = RendezvousPrompt(query.keys);
  if (query.deadline.has_value()) {
    snapshot.deadline_seconds = absl::ToDoubleSeconds(*query.deadline);
  }
  return snapshot;
}

absl::StatusOr<RouteAnswer> RouterCore::RouteAnew(const RouteQuery& query, uint64_t prompt_tokens,
                                                  const Matches& matches, absl::Time now,
                                                  std::optional<Decision>* decision) {
  absl::StatusOr<std::vector<Candidate>> candidates = CandidatesFor(query);
  if (!candidates.ok()) return candidates.status();
  RouteSnapshot snapshot = SnapshotFor(query, prompt_tokens, matches, now, &*candidates);
  random_->Fill(reinterpret_cast<uint8_t*>(&snapshot.random), sizeof(snapshot.random));

  const RoutePolicy& policy = query.policy != nullptr ? *query.policy : *policy_;
  std::vector<RankedChoice> ranked = policy.Rank(snapshot);
  CAIRN_CHECK(ranked.size() == candidates->size());
  ranked.resize(std::min(ranked.size(), options_.replicas_per_answer_max));
  RouteAnswer answer;
  answer.degraded = matches.block_tokens == 0 || !AnyHolderIn(now) || (ready_ && !complete_);
  answer.deadline_at_risk = snapshot.deadline_seconds.has_value() &&
                            ranked.front().terms.expected_ttft_seconds > *snapshot.deadline_seconds;
  answer.policy = std::string(policy.name());
  answer.score_unit = std::string(policy.score_unit());
  Booking booking;
  booking.prompt_tokens = prompt_tokens;
  booking.output_tokens = query.output_tokens;
  booking.owner = absl::HashOf(query.tenant);
  for (const RankedChoice& choice : ranked) {
    const Candidate& candidate = (*candidates)[choice.replica];
    const ReplicaView& view = snapshot.replicas[choice.replica];
    answer.replicas.push_back(Describe(candidate, view, choice));
    booking.predicted.push_back({candidate.id, view.OwnTokens() + view.remote_tokens});
  }
  absl::StatusOr<BookingId> booked = ledger_.Book(std::move(booking), now);
  if (!booked.ok()) return booked.status();
  answer.booking = *booked;
  ++routes_;
  deadlines_at_risk_ += answer.deadline_at_risk ? 1 : 0;
  if (answer.replicas.front().reason != RouteReason::kHolderOut) {
    const Candidate& first = (*candidates)[ranked.front().replica];
    Speculate(query, matches, *booked, first.replica->holder, now);
    if (!query.session.empty()) sessions_.Note(query.tenant, query.session, first.id, now);
  }
  if (decisions_ == nullptr || !decisions_->Wants(*booked)) return answer;
  decision->emplace();
  (*decision)->booking = *booked;
  (*decision)->fingerprint = query.fingerprint;
  (*decision)->policy = answer.policy;
  (*decision)->degraded = answer.degraded;
  for (const Candidate& candidate : *candidates) (*decision)->replicas.push_back(candidate.id);
  (*decision)->names = Names();
  (*decision)->snapshot = std::move(snapshot);
  (*decision)->ranked = std::move(ranked);
  return answer;
}

std::shared_ptr<const ReplicaNames> RouterCore::Names() {
  if (names_ != nullptr && names_version_ == registry_.version()) return names_;
  ReplicaNames names;
  for (const auto& [id, replica] : registry_.replicas()) {
    names.push_back({id, replica.worker_address, registry_.NodeIdOf(replica.holder)});
  }
  names_ = std::make_shared<const ReplicaNames>(std::move(names));
  names_version_ = registry_.version();
  return names_;
}

// All that was not fed, also what another booking marked: that one may end first.
void RouterCore::Speculate(const RouteQuery& query, const Matches& matches,
                           const BookingId& booking, HolderIndex holder, absl::Time now) {
  if (matches.block_tokens == 0) return;
  const PrefixMatch& match = matches.by_holder[holder];
  const std::optional<PartitionIndex> partition =
      partitions_.Intern(query.fingerprint, query.tenant);
  if (!partition.has_value()) return;
  const size_t fed = match.blocks - match.speculative;
  speculative_.Mark(booking, holder, *partition, query.keys.subspan(fed), now);
}

LookupAnswer RouterCore::LookupPrefix(absl::string_view tenant, const Fingerprint& fingerprint,
                                      absl::Span<const BlockKey> keys) const {
  const absl::Time now = time_.Now();
  queries_waiting_.fetch_add(1);
  absl::MutexLock lock(&mutex_);
  queries_waiting_.fetch_sub(1);
  const Matches matches = MatchPrompt(tenant, fingerprint, keys, nullptr, now);
  LookupAnswer answer;
  answer.namespace_known = matches.block_tokens != 0;
  for (size_t i = 0; i < feeds_.size(); ++i) {
    const PrefixMatch& match = matches.by_holder[i];
    if (match.blocks == 0) continue;
    const v1::NodeInfo& node = *feeds_[i]->node();
    answer.holders.push_back({node.node_id(),
                              {node.addresses().begin(), node.addresses().end()},
                              feeds_[i]->StateAt(now),
                              match.blocks,
                              TokensOf(match, matches.block_tokens)});
  }
  std::stable_sort(answer.holders.begin(), answer.holders.end(),
                   [](const HolderMatch& a, const HolderMatch& b) { return a.blocks > b.blocks; });
  return answer;
}

}  // namespace cairn::router
