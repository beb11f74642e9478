// The part of RouterCore that knows which holders there are, and when all that was waited for is
// in.
#include <utility>

#include "common/base/check.h"
#include "router/core/router_core.h"

namespace cairn::router {

void RouterCore::MakePlace(HolderIndex holder) {
  const size_t places = registry_.holder_count();
  CAIRN_CHECK(holder < places);
  namespaces_.GrowTo(places);
  speculative_.GrowTo(places);
  blocks_.GrowTo(places);
  feeds_.resize(places);
  notes_.resize(places);
  const FeedTargets targets = {&blocks_, &speculative_, &namespaces_, &partitions_};
  feeds_[holder] = std::make_unique<HolderFeed>(holder, options_.feed, targets);
  notes_[holder] = HolderNote();
}

absl::StatusOr<HolderIndex> RouterCore::AddHolder(std::string address) {
  absl::MutexLock lock(&mutex_);
  const absl::StatusOr<HolderIndex> added = registry_.Add(std::move(address));
  if (added.ok()) MakePlace(*added);
  return added;
}

void RouterCore::RemoveHolder(HolderIndex holder) {
  const absl::Time now = time_.Now();
  absl::MutexLock lock(&mutex_);
  CAIRN_CHECK(holder < feeds_.size() && !feeds_[holder]->streaming());
  feeds_[holder]->Forget();
  notes_[holder].removed_at = now;
  registry_.Remove(holder);
}

void RouterCore::HoldBack(HolderIndex holder, bool held_back) {
  const absl::Time now = time_.Now();
  absl::MutexLock lock(&mutex_);
  CAIRN_CHECK(holder < feeds_.size() && registry_.IsFollowed(holder));
  if (std::exchange(notes_[holder].held_back, held_back) && !held_back) {
    notes_[holder].new_since = ready_ ? now : absl::InfinitePast();
  }
}

void RouterCore::MembersKnown() {
  absl::MutexLock lock(&mutex_);
  members_known_ = true;
}

void RouterCore::ForgetReplicas(absl::Span<const ReplicaId> removed) {
  for (const ReplicaId replica : removed) {
    ledger_.Forget(replica);
    sessions_.Forget(replica);
  }
}

void RouterCore::DropDeparted(absl::Time now) {
  const bool any_in = AnyHolderIn(now);
  ForgetReplicas(registry_.DropDeparted([&](HolderIndex holder) {
    mutex_.AssertReaderHeld();
    return any_in && now - notes_[holder].removed_at >= options_.departed_for;
  }));
}

bool RouterCore::ReachableSnapshotsIn() const {
  if (!members_known_) return false;
  bool any_followed = false;
  for (size_t i = 0; i < feeds_.size(); ++i) {
    if (!registry_.IsFollowed(static_cast<HolderIndex>(i))) continue;
    any_followed = true;
    const bool unreachable = notes_[i].failed_once && !feeds_[i]->streaming();
    if (!unreachable && !feeds_[i]->SnapshotsIn()) return false;
  }
  return any_followed || !options_.members_to_come;
}

void RouterCore::NoteReadiness(absl::Time now) {
  if (complete_) return;
  complete_ = ReachableSnapshotsIn();
  if (complete_ || now - started_at_ >= options_.ready_wait) ready_ = true;
}

bool RouterCore::Ready() {
  const absl::Time now = time_.Now();
  absl::MutexLock lock(&mutex_);
  NoteReadiness(now);
  return ready_;
}

bool RouterCore::Degraded() {
  const absl::Time now = time_.Now();
  absl::MutexLock lock(&mutex_);
  NoteReadiness(now);
  return ready_ && !complete_;
}

std::vector<HolderState> RouterCore::HolderStates() const {
  const absl::Time now = time_.Now();
  absl::MutexLock lock(&mutex_);
  std::vector<HolderState> states;
  for (size_t i = 0; i < feeds_.size(); ++i) {
    if (registry_.IsFollowed(static_cast<HolderIndex>(i)))
      states.push_back(feeds_[i]->StateAt(now));
  }
  return states;
}

}  // namespace cairn::router
