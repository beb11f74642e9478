// HolderRegistry: which addresses are followed, which nodes they turned out to be, and the
// replicas beside those nodes.
//
// Addresses come and go. A node id belongs to one address at a time: while its feed lives, a second
// node that says the same id is refused; once it is silent or broken, the newcomer takes over.
// Replicas stay listed when their node is gone. One beside an address that is no longer followed
// has departed: it stays, in its place, until a node elsewhere says the id or names the worker, or
// the owner drops it. Not thread-safe: under the core's lock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cairn/v1/feed.pb.h"
#include "router/ids.h"

namespace cairn::router {

// A model worker, which receives requests, and the node beside it.
struct Replica {
  std::string worker_address;
  HolderIndex holder = 0;
  // Of that node.
  std::string node_id;
  // The same in every router: rendezvous hashing needs that.
  uint64_t stable_hash = 0;
};

class HolderRegistry {
 public:
  // What became of others when a holder said who it is.
  struct Claimed {
    // The address that the node moved away from: forget what is held of it.
    std::optional<HolderIndex> displaced;
    // Replicas that are no more. Also those of a worker that another node names at the same place,
    // or where the first departed: an address that was given anew, with another worker behind it.
    std::vector<ReplicaId> removed;
  };
  using Replicas = absl::btree_map<ReplicaId, Replica>;  // Ordered, so that runs repeat.

  // INVALID_ARGUMENT for an address that is empty or given twice, or more than kHoldersMax.
  static absl::StatusOr<HolderRegistry> Make(std::vector<std::string> addresses);

  // Follows a further address, in the first place that is free. INVALID_ARGUMENT for one that is
  // empty or followed; RESOURCE_EXHAUSTED when kHoldersMax places are taken.
  absl::StatusOr<HolderIndex> Add(std::string address);
  // The address is followed no more. Its replicas stay as departed; without any its place is free.
  // REQUIRES: it is followed, and its feed has ended.
  void Remove(HolderIndex holder);
  // Drops the departed replicas beside places for which `over` holds, and frees the places.
  std::vector<ReplicaId> DropDeparted(absl::FunctionRef<bool(HolderIndex)> over);

  // The holder's hello, checked by HolderFeed::CheckHello. FAILED_PRECONDITION naming both
  // addresses when another holder that `lives` has its node id; the stream must then be ended.
  absl::StatusOr<Claimed> Claim(HolderIndex holder, const v1::NodeInfo& hello,
                                absl::FunctionRef<bool(HolderIndex)> lives);

  // Gives a worker that several nodes name to another of them when the node that it stood beside is
  // `out`. To be called now and then; without such disputes it costs nothing.
  void SettleWorkers(absl::FunctionRef<bool(HolderIndex)> out);

  // Places, free ones and those of departed replicas included.
  size_t holder_count() const { return holders_.size(); }
  bool IsFollowed(HolderIndex holder) const { return holders_[holder].place == Place::kFollowed; }
  const std::string& AddressOf(HolderIndex holder) const { return holders_[holder].address; }
  // Empty before its first hello.
  const std::string& NodeIdOf(HolderIndex holder) const { return holders_[holder].node_id; }

  const Replicas& replicas() const { return replicas_; }
  // Another one whenever replicas or node ids may have changed.
  uint64_t version() const { return version_; }
  std::optional<ReplicaId> FindReplica(absl::string_view worker_address) const;

  // What is in dispute about the holder now: another node that says its id or names its worker.
  // Empty when nothing is.
  std::string ConflictOf(HolderIndex holder) const;

 private:
  enum class Place {
    kFree,
    kFollowed,
    kDeparted,  // Followed no more; a replica still refers to it.
  };
  struct Holder {
    Place place = Place::kFollowed;
    std::string address;
    std::string node_id;
    // Why its last hello was refused, or its worker not listed, and the holder it lost to.
    std::string conflict;
    HolderIndex conflicts_with = 0;
    // That it names and another node has; else empty.
    std::string disputed_worker;
  };

  HolderRegistry() = default;

  // Another worker than the replica's, though it says the same address.
  bool IsStranger(const Replica& replica, HolderIndex holder, const v1::NodeInfo& hello) const;
  // Frees the places of departed replicas that are no more.
  void FreePlaces();
  void AttachReplica(HolderIndex holder, const v1::NodeInfo& hello,
                     absl::FunctionRef<bool(HolderIndex)> lives, Claimed* claimed);
  void AddReplica(const std::string& worker_address, HolderIndex holder);
  void Dispute(HolderIndex holder, const Replica& replica);
  void EndDispute(Holder* holder);
  void RemoveReplicasOf(HolderIndex holder, absl::string_view kept_worker, Claimed* claimed);

  std::vector<Holder> holders_;
  Replicas replicas_;
  ReplicaId next_replica_ = 1;
  uint64_t version_ = 0;
  size_t disputes_ = 0;  // Holders with a disputed worker.
  size_t departed_ = 0;  // Places of departed replicas.
};

}  // namespace cairn::router
