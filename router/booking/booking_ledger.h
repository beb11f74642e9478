// BookingLedger: what the router sent where and has not heard the end of.
//
// A booking has two parts: prefill tokens until the first token, KV tokens until the end. It is a
// lease: one that is not reported on in time ends by itself, so that a dead client leaves no ghost
// load. Reports are idempotent; one on a booking that is over or was never made here is only
// counted. Not thread-safe: under the core's lock; times are guarded times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/random_source.h"
#include "router/booking/learned_rate.h"
#include "router/booking/staleness.h"
#include "router/ids.h"

namespace cairn::router {

struct BookingOptions {
  // From routing to the first token, and from there to the end.
  absl::Duration prefill_ttl = absl::Minutes(5);
  absl::Duration decode_ttl = absl::Minutes(15);
  size_t bookings_max = size_t{1} << 18;
  // Tokens a second that a replica prefills, before it is known better.
  double prefill_tokens_per_second_prior = 15000;
};

struct Booking {
  // What each replica of the answer was thought to have cached.
  struct Predicted {
    ReplicaId replica = 0;
    uint64_t cached_tokens = 0;
  };

  uint64_t prompt_tokens = 0;
  uint64_t output_tokens = 0;
  // In the answer's order; the booking stands for the first. Not empty.
  std::vector<Predicted> predicted;
  // Stands for the tenant that it was made for.
  uint64_t owner = 0;
};

enum class OutcomePhase { kFirstToken, kEnd };

// How a request's answer was made, as its worker says at the end.
struct Decoded {
  uint64_t output_tokens = 0;
  // Of them, those that cache nodes attended for.
  uint64_t served_tokens = 0;
  // How often the request was preempted, and how often a cache node had no room for it.
  uint64_t preemptions = 0;
  uint64_t refusals = 0;

  friend bool operator==(const Decoded&, const Decoded&) = default;
};

struct Outcome {
  BookingId booking;
  OutcomePhase phase = OutcomePhase::kEnd;
  // Who took it: nothing for the replica it stands for.
  std::optional<ReplicaId> replica;
  // It went to a worker that is none of ours: it is no load here any more.
  bool elsewhere = false;
  uint64_t cached_tokens = 0;
  uint64_t computed_tokens = 0;
  // 0: not measured.
  double compute_seconds = 0;
};

struct ReplicaLoad {
  uint64_t prefill_tokens = 0;
  uint64_t kv_tokens = 0;
  uint64_t requests = 0;

  friend bool operator==(const ReplicaLoad&, const ReplicaLoad&) = default;
};

class BookingLedger {
 public:
  struct Counters {
    uint64_t booked = 0;
    uint64_t ended = 0;
    uint64_t expired = 0;
    uint64_t reports_unknown = 0;
  };

  // `random` outlives the ledger.
  BookingLedger(const BookingOptions& options, RandomSource* random);

  // RESOURCE_EXHAUSTED at the bound.
  absl::StatusOr<BookingId> Book(Booking booking, absl::Time now);

  // False when the booking is not known here (any more).
  bool Report(const Outcome& outcome, absl::Time now);

  // Ends what is past its time and returns it.
  std::vector<BookingId> Expire(absl::Time now);

  // Who carries the booking's load; nothing when that is nobody or the booking is not known.
  std::optional<ReplicaId> ReplicaOf(const BookingId& booking) const;
  // False also when the booking is not known.
  bool BelongsTo(const BookingId& booking, uint64_t owner) const;
  ReplicaLoad LoadOf(ReplicaId replica) const;
  double PrefillTokensPerSecond(ReplicaId replica) const;
  const Staleness* StalenessOf(ReplicaId replica) const;
  // Over all replicas.
  const Staleness& staleness() const { return staleness_; }
  // The replica is gone for good, and its id with it: its load and rate are forgotten, its bookings
  // stand for nobody. O(1).
  void Forget(ReplicaId replica);

  size_t booking_count() const { return entries_.size(); }
  const Counters& counters() const { return counters_; }

 private:
  static constexpr ReplicaId kNobody = 0;
  struct Entry {
    Booking booking;
    ReplicaId replica = kNobody;  // Who carries its load, unless it was forgotten.
    bool prefilling = true;
    bool measured = false;  // Its figures were taken.
    absl::Time expires;
  };
  struct Account {
    explicit Account(double prior) : rate(prior) {}
    ReplicaLoad load;
    LearnedRate rate;
    Staleness staleness;
  };
  using Entries = absl::flat_hash_map<BookingId, Entry>;

  void SetDeadline(const BookingId& id, absl::Time expires, Entry* entry);
  static uint64_t CachedTokens(const Entry& entry, ReplicaId replica);
  static ReplicaLoad LoadOf(const Entry& entry);
  // Null for nobody, and for a replica that was forgotten.
  Account* FindAccount(ReplicaId replica);
  void OpenAccount(ReplicaId replica);
  void Charge(const Entry& entry);
  void Discharge(const Entry& entry);
  void Move(ReplicaId replica, Entry* entry);
  void Measure(const Outcome& outcome, Entry* entry);
  void Erase(Entries::iterator entry);

  const BookingOptions options_;
  RandomSource* const random_;
  Entries entries_;
  absl::flat_hash_map<ReplicaId, Account> accounts_;
  absl::btree_set<std::pair<absl::Time, BookingId>> deadlines_;  // One for each entry.
  Staleness staleness_;
  Counters counters_;
};

}  // namespace cairn::router
