#include "router/membership/holder_registry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/identity/rendezvous.h"

namespace cairn::router {

absl::StatusOr<HolderRegistry> HolderRegistry::Make(std::vector<std::string> addresses) {
  if (addresses.size() > kHoldersMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(addresses.size(), " holders, at most ", kHoldersMax));
  }
  HolderRegistry registry;
  for (std::string& address : addresses) {
    const absl::Status added = registry.Add(std::move(address)).status();
    if (!added.ok()) return added;
  }
  return registry;
}

absl::StatusOr<HolderIndex> HolderRegistry::Add(std::string address) {
  if (address.empty()) return absl::InvalidArgumentError("a holder's address is empty");
  size_t free = holders_.size();
  for (size_t i = 0; i < holders_.size(); ++i) {
    if (holders_[i].place == Place::kFollowed && holders_[i].address == address) {
      return absl::InvalidArgumentError(absl::StrCat("the holder ", address, " is given twice"));
    }
    if (holders_[i].place == Place::kFree) free = std::min(free, i);
  }
  if (free == kHoldersMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no place is left for the holder ", address, ": ", kHoldersMax, " are taken"));
  }
  if (free == holders_.size()) holders_.emplace_back();
  holders_[free] = Holder();
  holders_[free].address = std::move(address);
  ++version_;
  return static_cast<HolderIndex>(free);
}

void HolderRegistry::Remove(HolderIndex holder) {
  CAIRN_CHECK(holder < holders_.size() && IsFollowed(holder));
  ++version_;
  EndDispute(&holders_[holder]);
  holders_[holder].conflict.clear();
  holders_[holder].place = Place::kDeparted;
  ++departed_;
  for (Holder& other : holders_) {
    const bool by_id = !other.conflict.empty() && other.disputed_worker.empty();
    if (by_id && other.conflicts_with == holder) other.conflict.clear();
  }
  FreePlaces();
}

std::vector<ReplicaId> HolderRegistry::DropDeparted(absl::FunctionRef<bool(HolderIndex)> over) {
  if (departed_ == 0) return {};
  Claimed dropped;
  for (size_t i = 0; i < holders_.size(); ++i) {
    const auto holder = static_cast<HolderIndex>(i);
    if (holders_[i].place == Place::kDeparted && over(holder)) {
      RemoveReplicasOf(holder, "", &dropped);
    }
  }
  FreePlaces();
  return std::move(dropped.removed);
}

void HolderRegistry::FreePlaces() {
  if (departed_ == 0) return;
  std::vector<bool> used(holders_.size());
  for (const auto& [id, replica] : replicas_) used[replica.holder] = true;
  for (size_t i = 0; i < holders_.size(); ++i) {
    if (holders_[i].place != Place::kDeparted || used[i]) continue;
    holders_[i] = Holder();
    holders_[i].place = Place::kFree;
    --departed_;
    ++version_;
  }
}

absl::StatusOr<HolderRegistry::Claimed> HolderRegistry::Claim(
    HolderIndex holder, const v1::NodeInfo& hello, absl::FunctionRef<bool(HolderIndex)> lives) {
  CAIRN_CHECK(holder < holders_.size() && IsFollowed(holder));
  ++version_;
  Holder& claimer = holders_[holder];
  Claimed claimed;
  for (HolderIndex other = 0; other < holders_.size(); ++other) {
    if (other == holder || holders_[other].node_id != hello.node_id()) continue;
    if (lives(other)) {
      claimer.conflict = absl::StrCat("node id '", hello.node_id(), "' is said by ",
                                      claimer.address, " and held by ", holders_[other].address,
                                      ", whose feed lives; give each node its own id");
      claimer.conflicts_with = other;
      EndDispute(&claimer);
      return absl::FailedPreconditionError(claimer.conflict);
    }
    holders_[other].node_id.clear();
    holders_[other].conflict.clear();
    EndDispute(&holders_[other]);
    claimed.displaced = other;
  }
  claimer.node_id = hello.node_id();
  claimer.conflict.clear();
  EndDispute(&claimer);
  AttachReplica(holder, hello, lives, &claimed);
  FreePlaces();
  return claimed;
}

bool HolderRegistry::IsStranger(const Replica& replica, HolderIndex holder,
                                const v1::NodeInfo& hello) const {
  if (replica.node_id == hello.node_id()) return false;
  return replica.holder == holder || holders_[replica.holder].place == Place::kDeparted;
}

// A worker that two living nodes name keeps the first of them.
void HolderRegistry::AttachReplica(HolderIndex holder, const v1::NodeInfo& hello,
                                   absl::FunctionRef<bool(HolderIndex)> lives, Claimed* claimed) {
  if (claimed->displaced.has_value()) {
    RemoveReplicasOf(*claimed->displaced, hello.worker_address(), claimed);
  }
  RemoveReplicasOf(holder, hello.worker_address(), claimed);
  if (hello.worker_address().empty()) return;
  const std::optional<ReplicaId> known = FindReplica(hello.worker_address());
  if (known.has_value() && IsStranger(replicas_.at(*known), holder, hello)) {
    claimed->removed.push_back(*known);
    replicas_.erase(*known);
    return AddReplica(hello.worker_address(), holder);
  }
  if (!known.has_value()) return AddReplica(hello.worker_address(), holder);
  Replica& replica = replicas_.at(*known);
  if (replica.holder != holder && lives(replica.holder)) {
    Dispute(holder, replica);
    return;
  }
  replica.holder = holder;
  replica.node_id = hello.node_id();
}

void HolderRegistry::Dispute(HolderIndex holder, const Replica& replica) {
  Holder& loser = holders_[holder];
  CAIRN_CHECK(loser.disputed_worker.empty());
  loser.disputed_worker = replica.worker_address;
  ++disputes_;
  loser.conflict = absl::StrCat("worker ", replica.worker_address, " is named by ", loser.address,
                                " and by ", holders_[replica.holder].address,
                                ", whose feed lives; the first node is taken to be beside it");
  loser.conflicts_with = replica.holder;
}

void HolderRegistry::EndDispute(Holder* holder) {
  if (holder->disputed_worker.empty()) return;
  holder->disputed_worker.clear();
  CAIRN_CHECK(disputes_ > 0);
  --disputes_;
}

void HolderRegistry::SettleWorkers(absl::FunctionRef<bool(HolderIndex)> out) {
  if (disputes_ == 0) return;
  for (HolderIndex i = 0; i < holders_.size(); ++i) {
    Holder& holder = holders_[i];
    if (holder.disputed_worker.empty() || out(i)) continue;
    const std::optional<ReplicaId> known = FindReplica(holder.disputed_worker);
    if (known.has_value()) {
      Replica& replica = replicas_.at(*known);
      if (!out(replica.holder)) continue;
      replica.holder = i;
      replica.node_id = holder.node_id;
    } else {
      AddReplica(holder.disputed_worker, i);
    }
    EndDispute(&holder);
    holder.conflict.clear();
    ++version_;
  }
  FreePlaces();
}

void HolderRegistry::AddReplica(const std::string& worker_address, HolderIndex holder) {
  replicas_.emplace(next_replica_++, Replica{worker_address, holder, holders_[holder].node_id,
                                             RendezvousReplica(worker_address)});
}

void HolderRegistry::RemoveReplicasOf(HolderIndex holder, absl::string_view kept_worker,
                                      Claimed* claimed) {
  for (auto it = replicas_.begin(); it != replicas_.end();) {
    if (it->second.holder != holder || it->second.worker_address == kept_worker) {
      ++it;
      continue;
    }
    claimed->removed.push_back(it->first);
    it = replicas_.erase(it);
  }
}

std::optional<ReplicaId> HolderRegistry::FindReplica(absl::string_view worker_address) const {
  for (const auto& [id, replica] : replicas_) {
    if (replica.worker_address == worker_address) return id;
  }
  return std::nullopt;
}

std::string HolderRegistry::ConflictOf(HolderIndex holder) const {
  CAIRN_CHECK(holder < holders_.size());
  if (!holders_[holder].conflict.empty()) return holders_[holder].conflict;
  for (const Holder& other : holders_) {
    if (!other.conflict.empty() && other.conflicts_with == holder) return other.conflict;
  }
  return "";
}

}  // namespace cairn::router
