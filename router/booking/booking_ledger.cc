#include "router/booking/booking_ledger.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn::router {

BookingLedger::BookingLedger(const BookingOptions& options, RandomSource* random)
    : options_(options), random_(random) {
  CAIRN_CHECK(random != nullptr && options.bookings_max > 0);
}

absl::StatusOr<BookingId> BookingLedger::Book(Booking booking, absl::Time now) {
  CAIRN_CHECK(!booking.predicted.empty());
  if (entries_.size() >= options_.bookings_max) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the router has ", entries_.size(),
                     " open bookings, its bound; report outcomes or raise the bound"));
  }
  const auto id = random_->New<BookingId>();
  Entry entry;
  entry.replica = booking.predicted.front().replica;
  entry.booking = std::move(booking);
  CAIRN_CHECK(entry.replica != kNobody);
  OpenAccount(entry.replica);
  Charge(entry);
  SetDeadline(id, now + options_.prefill_ttl, &entry);
  const bool is_new = entries_.emplace(id, std::move(entry)).second;
  CAIRN_CHECK(is_new);
  ++counters_.booked;
  return id;
}

bool BookingLedger::Report(const Outcome& outcome, absl::Time now) {
  const auto found = entries_.find(outcome.booking);
  if (found == entries_.end()) {
    ++counters_.reports_unknown;
    return false;
  }
  Entry& entry = found->second;
  if (outcome.elsewhere) {
    Move(kNobody, &entry);
  } else if (outcome.replica.has_value()) {
    Move(*outcome.replica, &entry);
  }
  Measure(outcome, &entry);
  if (outcome.phase == OutcomePhase::kEnd) {
    ++counters_.ended;
    Erase(found);
  } else if (entry.prefilling) {
    Discharge(entry);
    entry.prefilling = false;
    Charge(entry);
    SetDeadline(outcome.booking, now + options_.decode_ttl, &entry);
  }
  return true;
}

std::vector<BookingId> BookingLedger::Expire(absl::Time now) {
  std::vector<BookingId> expired;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const auto found = entries_.find(deadlines_.begin()->second);
    CAIRN_CHECK(found != entries_.end());
    expired.push_back(found->first);
    ++counters_.expired;
    Erase(found);
  }
  return expired;
}

std::optional<ReplicaId> BookingLedger::ReplicaOf(const BookingId& booking) const {
  const auto found = entries_.find(booking);
  if (found == entries_.end() || !accounts_.contains(found->second.replica)) return std::nullopt;
  return found->second.replica;
}

bool BookingLedger::BelongsTo(const BookingId& booking, uint64_t owner) const {
  const auto found = entries_.find(booking);
  return found != entries_.end() && found->second.booking.owner == owner;
}

ReplicaLoad BookingLedger::LoadOf(ReplicaId replica) const {
  const auto found = accounts_.find(replica);
  return found == accounts_.end() ? ReplicaLoad{} : found->second.load;
}

double BookingLedger::PrefillTokensPerSecond(ReplicaId replica) const {
  const auto found = accounts_.find(replica);
  return found == accounts_.end() ? options_.prefill_tokens_per_second_prior
                                  : found->second.rate.per_second();
}

const Staleness* BookingLedger::StalenessOf(ReplicaId replica) const {
  const auto found = accounts_.find(replica);
  return found == accounts_.end() ? nullptr : &found->second.staleness;
}

// Its bookings are not looked for: there may be very many, and they find that it has no account.
void BookingLedger::Forget(ReplicaId replica) { accounts_.erase(replica); }

void BookingLedger::SetDeadline(const BookingId& id, absl::Time expires, Entry* entry) {
  deadlines_.erase({entry->expires, id});
  entry->expires = expires;
  deadlines_.insert({expires, id});
}

uint64_t BookingLedger::CachedTokens(const Entry& entry, ReplicaId replica) {
  for (const Booking::Predicted& predicted : entry.booking.predicted) {
    if (predicted.replica == replica) return predicted.cached_tokens;
  }
  return 0;
}

ReplicaLoad BookingLedger::LoadOf(const Entry& entry) {
  const uint64_t cached = std::min(CachedTokens(entry, entry.replica), entry.booking.prompt_tokens);
  return {.prefill_tokens = entry.prefilling ? entry.booking.prompt_tokens - cached : 0,
          .kv_tokens = entry.booking.prompt_tokens + entry.booking.output_tokens,
          .requests = 1};
}

BookingLedger::Account* BookingLedger::FindAccount(ReplicaId replica) {
  const auto found = accounts_.find(replica);
  return found == accounts_.end() ? nullptr : &found->second;
}

void BookingLedger::OpenAccount(ReplicaId replica) {
  if (replica != kNobody) accounts_.try_emplace(replica, options_.prefill_tokens_per_second_prior);
}

void BookingLedger::Charge(const Entry& entry) {
  Account* const account = FindAccount(entry.replica);
  if (account == nullptr) return;
  const ReplicaLoad share = LoadOf(entry);
  account->load.prefill_tokens += share.prefill_tokens;
  account->load.kv_tokens += share.kv_tokens;
  account->load.requests += share.requests;
}

void BookingLedger::Discharge(const Entry& entry) {
  Account* const account = FindAccount(entry.replica);
  if (account == nullptr) return;
  ReplicaLoad& load = account->load;
  const ReplicaLoad share = LoadOf(entry);
  CAIRN_CHECK(load.prefill_tokens >= share.prefill_tokens && load.kv_tokens >= share.kv_tokens &&
              load.requests >= share.requests);
  load.prefill_tokens -= share.prefill_tokens;
  load.kv_tokens -= share.kv_tokens;
  load.requests -= share.requests;
}

void BookingLedger::Move(ReplicaId replica, Entry* entry) {
  if (entry->replica == replica) return;
  Discharge(*entry);
  entry->replica = replica;
  OpenAccount(replica);
  Charge(*entry);
}

// The first report with figures counts; later ones repeat it.
void BookingLedger::Measure(const Outcome& outcome, Entry* entry) {
  Account* const account = FindAccount(entry->replica);
  if (entry->measured || account == nullptr) return;
  if (outcome.cached_tokens == 0 && outcome.computed_tokens == 0) return;
  entry->measured = true;
  account->rate.Add(static_cast<double>(outcome.computed_tokens), outcome.compute_seconds);
  const uint64_t predicted = CachedTokens(*entry, entry->replica);
  account->staleness.Add(predicted, outcome.cached_tokens);
  staleness_.Add(predicted, outcome.cached_tokens);
}

void BookingLedger::Erase(Entries::iterator entry) {
  Discharge(entry->second);
  deadlines_.erase({entry->second.expires, entry->first});
  entries_.erase(entry);
}

}  // namespace cairn::router
