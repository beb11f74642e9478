#include "router/membership/holder_registry.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/identity/rendezvous.h"

namespace cairn::router {
HolderRegistry::HolderRegistry(std::vector<std::string> addresses) {
  for (std::string& address : addresses) {
    holders_.emplace_back();
    holders_.back().address = std::move(address);
  }
}

absl::StatusOr<HolderRegistry> HolderRegistry::Make(std::vector<std::string> addresses) {
  if (addresses.size() > kHoldersMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(addresses.size(), " holders, at most ", kHoldersMax));
  }
  absl::flat_hash_set<absl::string_view> seen;
  for (const std::string& address : addresses) {
    if (address.empty()) return absl::InvalidArgumentError("a holder's address is empty");
    if (!seen.insert(address).second) {
      return absl::InvalidArgumentError(absl::StrCat("the holder ", address, " is given twice"));
    }
  }
  return HolderRegistry(std::move(addresses));
}

absl::StatusOr<HolderRegistry::Claimed> HolderRegistry::Claim(
    HolderIndex holder, const v1::NodeInfo& hello, absl::FunctionRef<bool(HolderIndex)> lives) {
  CAIRN_CHECK(holder < holders_.size());
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
  return claimed;
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
  if (!known.has_value()) {
    replicas_.emplace(next_replica_++, Replica{hello.worker_address(), holder,
                                               RendezvousReplica(hello.worker_address())});
    return;
  }
  Replica& replica = replicas_.at(*known);
  if (replica.holder != holder && lives(replica.holder)) {
    Dispute(holder, replica);
    return;
  }
  replica.holder = holder;
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
    } else {
      AddReplica(holder.disputed_worker, i);
    }
    EndDispute(&holder);
    holder.conflict.clear();
    ++version_;
  }
}

void HolderRegistry::AddReplica(const std::string& worker_address, HolderIndex holder) {
  replicas_.emplace(next_replica_++,
                    Replica{worker_address, holder, RendezvousReplica(worker_address)});
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
