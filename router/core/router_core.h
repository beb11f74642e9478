// RouterCore: the whole router without its network. It follows the holders' feeds, ranks replicas
// for prompts, and keeps the bookings.
//
// Thread-safe: one lock, under which there is no I/O, RPC or log. A batch is taken in bit by bit,
// and queries that wait go first. It starts no thread and reads no clock but its own: the owner
// calls Tick() regularly, several times within RouterOptions::tick_advance_max. Everything is soft
// state: another router over the same holders answers the same, and a new one needs nothing from an
// old one.
//
// Of one holder's address, one stream at a time: OnFeed with its messages in order, then
// OnFeedBroken when it ended or could not be made, before the next one's hello. Holders come and go
// while it runs: AddHolder before the first stream, RemoveHolder after the last one ended.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "cairn/v1/feed.pb.h"
#include "common/base/clock.h"
#include "common/base/guarded_time.h"
#include "common/base/random_source.h"
#include "router/booking/booking_ledger.h"
#include "router/booking/request_memory.h"
#include "router/booking/session_memory.h"
#include "router/core/router_options.h"
#include "router/core/router_types.h"
#include "router/decisions/decision_sink.h"
#include "router/feed/holder_feed.h"
#include "router/index/block_holders.h"
#include "router/index/namespace_directory.h"
#include "router/index/partition_table.h"
#include "router/index/speculative_blocks.h"
#include "router/membership/holder_registry.h"
#include "router/policy/route_policy.h"

namespace cairn::router {

class RouterCore {
 public:
  struct Counters {
    uint64_t routes = 0;
    uint64_t reports_of_other_incarnations = 0;
    BookingLedger::Counters bookings;
    uint64_t predicted_tokens = 0;
    uint64_t delivered_tokens = 0;
    Decoded decoded;  // Sums of what ends reported.
    bool stale_alarm = false;
    uint64_t index_slots = 0;
    uint64_t speculative_marks = 0;
    uint64_t sessions = 0;
    uint64_t deadlines_at_risk = 0;
  };

  // `clock`, `random` and `decisions` outlive the core. `decisions` gets what was decided and what
  // was reported of it, after the lock is let go; null: nobody does. INVALID_ARGUMENT names the
  // option that is wrong.
  static absl::StatusOr<std::unique_ptr<RouterCore>> Make(const RouterOptions& options,
                                                          std::unique_ptr<RoutePolicy> policy,
                                                          const Clock* clock, RandomSource* random,
                                                          DecisionSink* decisions = nullptr);

  // The next message of the holder's stream. Returns the shards to ask for again now. When it
  // fails, the status says why, and the caller ends the stream and reports OnFeedBroken: the
  // message broke the contract or a bound, or a living node at another address has the same id
  // (FAILED_PRECONDITION, both addresses said).
  absl::StatusOr<std::vector<uint32_t>> OnFeed(HolderIndex holder,
                                               const v1::WatchBlocksResponse& message);
  void OnFeedBroken(HolderIndex holder);
  void Tick();

  // Follows a further address; INVALID_ARGUMENT or RESOURCE_EXHAUSTED as HolderRegistry::Add. What
  // a place was before means nothing to it.
  absl::StatusOr<HolderIndex> AddHolder(std::string address);
  // Follows it no more: nothing of it is matched from here on. The replica beside it stays listed
  // as OUT (RouterOptions::departed_for). The place may be given out again.
  void RemoveHolder(HolderIndex holder);
  // Nothing new is sent to its replica while `held_back`, whatever its feed says; what it holds can
  // still be read by others. Its ramp begins when that ends.
  void HoldBack(HolderIndex holder, bool held_back);
  // The source of nodes has said for the first time who there is.
  void MembersKnown();

  // INVALID_ARGUMENT for a prompt shorter than its blocks or too long, or a request id that was
  // used for another request; UNAVAILABLE while no replica is known, or where all are excluded;
  // FAILED_PRECONDITION where none has the labels that are required; RESOURCE_EXHAUSTED at the
  // bound of bookings. A holder that is out, and a deadline that cannot be made, are no errors.
  absl::StatusOr<RouteAnswer> Route(const RouteQuery& query);
  // What each holder was said to have; books nothing.
  LookupAnswer LookupPrefix(absl::string_view tenant, const Fingerprint& fingerprint,
                            absl::Span<const BlockKey> keys) const;
  // Idempotent. False when the booking is another incarnation's, or over: it was only counted.
  // INVALID_ARGUMENT for seconds that are negative, or more than a day.
  absl::StatusOr<bool> ReportOutcome(const OutcomeReport& report);
  std::vector<ReplicaStatus> ListReplicas() const;

  // Tokens in a block of the namespace; nothing when no holder registered it.
  std::optional<uint32_t> BlockTokens(const Fingerprint& fingerprint) const;
  // How keys are made of its tokens; nothing as above.
  std::optional<KeyRules> KeyRulesOf(const Fingerprint& fingerprint) const;
  // The snapshots of all holders that could be reached are in, or waiting for them took too long.
  // Once true, always true.
  bool Ready();
  // Ready by waiting: some of them are still to come. Over, for good, when they are in. Until then
  // routes say so.
  bool Degraded();
  Counters counters() const;
  HolderState StateOf(HolderIndex holder) const;

  // Of each address that is followed.
  std::vector<HolderState> HolderStates() const;

  const Incarnation& incarnation() const { return incarnation_; }

 private:
  // What is remembered of a place beside its feed.
  struct HolderNote {
    bool failed_once = false;  // A stream was not to be had.
    bool held_back = false;
    // When its node was first heard of in this incarnation; of those that were there before this
    // router was ready, the infinite past.
    absl::Time new_since = absl::InfinitePast();
    absl::Time removed_at = absl::InfinitePast();
  };
  // What a holder has of one prompt, as far as the caller may know.
  struct Matches {
    uint32_t block_tokens = 0;  // 0: no holder knows the namespace.
    std::vector<PrefixMatch> by_holder;
  };
  // A replica in the snapshot's order, and where it would read from beside its own node.
  struct Candidate {
    ReplicaId id = 0;
    const Replica* replica = nullptr;
    std::optional<HolderIndex> remote;
  };

  RouterCore(const RouterOptions& options, HolderRegistry registry,
             std::unique_ptr<RoutePolicy> policy, const Clock* clock, RandomSource* random,
             DecisionSink* decisions);

  void MakePlace(HolderIndex holder) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetReplicas(absl::Span<const ReplicaId> removed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropDeparted(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteReadiness(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool ReachableSnapshotsIn() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void LetQueriesGoFirst() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status TakeHello(HolderIndex holder, const v1::NodeInfo& hello, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteAge(HolderIndex holder, const v1::NodeInfo& hello, std::optional<HolderIndex> moved_from,
               absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<uint64_t> KvTokensMaxOf(HolderIndex holder) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool Lives(HolderIndex holder, absl::Time now) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // It is in, not draining and not held back.
  bool Serves(HolderIndex holder, absl::Time now) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool AnyHolderIn(absl::Time now) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  Matches MatchPrompt(absl::string_view tenant, const Fingerprint& fingerprint,
                      absl::Span<const BlockKey> keys, const SpeculativeBlocks* speculative,
                      absl::Time now) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::vector<Candidate>> CandidatesFor(const RouteQuery& query) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  RouteSnapshot SnapshotFor(const RouteQuery& query, uint64_t prompt_tokens, const Matches& matches,
                            absl::Time now, std::vector<Candidate>* candidates) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  ReplicaView ViewOf(const Matches& matches, absl::Time now, Candidate* candidate) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void SeekRemote(const Matches& matches, absl::Time now, Candidate* candidate,
                  ReplicaView* view) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  RankedReplica Describe(const Candidate& candidate, const ReplicaView& view,
                         const RankedChoice& choice) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // A new decision is given out where it is wanted.
  absl::StatusOr<RouteAnswer> Decide(const RouteQuery& query, std::optional<Decision>* decision)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<RouteAnswer> RouteAnew(const RouteQuery& query, uint64_t prompt_tokens,
                                        const Matches& matches, absl::Time now,
                                        std::optional<Decision>* decision)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<const ReplicaNames> Names() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // As the ledger took it; nothing where it did not.
  std::optional<Outcome> TakeReport(const OutcomeReport& report) ABSL_LOCKS_EXCLUDED(mutex_);
  void AddDecoded(const Decoded& decoded) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Speculate(const RouteQuery& query, const Matches& matches, const BookingId& booking,
                 HolderIndex holder, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const RouterOptions options_;
  const std::unique_ptr<RoutePolicy> policy_;
  RandomSource* const random_;
  DecisionSink* const decisions_;
  const Incarnation incarnation_;
  GuardedTime time_;
  const absl::Time started_at_;

  // Calls of Route and LookupPrefix that are about to take the lock.
  mutable std::atomic<int> queries_waiting_{0};
  mutable absl::Mutex mutex_;
  PartitionTable partitions_ ABSL_GUARDED_BY(mutex_);
  NamespaceDirectory namespaces_ ABSL_GUARDED_BY(mutex_);
  SpeculativeBlocks speculative_ ABSL_GUARDED_BY(mutex_);
  BlockHolders blocks_ ABSL_GUARDED_BY(mutex_);
  HolderRegistry registry_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<HolderFeed>> feeds_ ABSL_GUARDED_BY(mutex_);
  std::vector<HolderNote> notes_ ABSL_GUARDED_BY(mutex_);  // By holder.
  BookingLedger ledger_ ABSL_GUARDED_BY(mutex_);
  SessionMemory sessions_ ABSL_GUARDED_BY(mutex_);
  RequestMemory<RouteAnswer> answers_ ABSL_GUARDED_BY(mutex_);
  // Of registry_ at that version. Shared with decisions, which outlive it.
  std::shared_ptr<const ReplicaNames> names_ ABSL_GUARDED_BY(mutex_);
  uint64_t names_version_ ABSL_GUARDED_BY(mutex_) = 0;
  bool members_known_ ABSL_GUARDED_BY(mutex_);
  bool ready_ ABSL_GUARDED_BY(mutex_) = false;
  bool complete_ ABSL_GUARDED_BY(mutex_) = false;  // All that was waited for is in, or was once.
  uint64_t routes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t deadlines_at_risk_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t reports_of_other_incarnations_ ABSL_GUARDED_BY(mutex_) = 0;
  Decoded decoded_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn::router
