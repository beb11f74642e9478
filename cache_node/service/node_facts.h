// NodeFacts: what a node says of itself: who it is, whether it drains, how busy it is.
//
// Thread-safe. Borrows the store, the admission and the disk tier, which must outlive it.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "cache_node/service/in_flight_bytes.h"
#include "cache_node/store/block_store.h"
#include "cache_node/store/store_counters.h"
#include "cache_node/tiers/disk/disk_tier.h"
#include "cairn/v1/cache_node.pb.h"
#include "cairn/v1/feed.pb.h"
#include "common/base/bytes16.h"
#include "common/rpc/labels.h"

namespace cairn::node {

class NodeFacts {
 public:
  struct Identity {
    std::string node_id;
    Incarnation incarnation;
    std::string worker_address;
    uint32_t shards = 0;
    uint64_t worker_kv_tokens = 0;  // 0: not known.
    std::vector<Label> labels = {};
  };
  struct Memory {
    std::vector<v1::MemoryTerm> terms;
    uint64_t limit_bytes = 0;
  };

  using DecodeReporter = std::function<void(v1::DecodeReport* report)>;

  // `disk` is null without a disk tier, `decode` where nothing is decoded. The reporter is
  // thread-safe.
  NodeFacts(Identity identity, Memory memory, const BlockStore* store,
            const InFlightBytes* in_flight, const StoreCounters* counters, const DiskTier* disk,
            DecodeReporter decode = nullptr);

  // Where clients reach the node. Known once it listens; calls that come before see none.
  void SetAddresses(std::vector<std::string> addresses) ABSL_LOCKS_EXCLUDED(mutex_);

  // From now on the node says that it is to go.
  void SetDraining() { draining_.store(true); }
  bool draining() const { return draining_.load(); }

  const Identity& identity() const { return identity_; }
  const Memory& memory() const { return memory_; }

  void FillInfo(v1::NodeInfo* info) const ABSL_LOCKS_EXCLUDED(mutex_);
  void FillLoad(v1::LoadReport* load) const;
  // As FillHeartbeat does.
  void FillDecode(v1::DescribeResponse* response) const;
  // All but the shards.
  void FillHeartbeat(v1::Heartbeat* heartbeat) const;

 private:
  // REQUIRES: there is a disk tier.
  void FillDisk(v1::DiskReport* report) const;
  v1::DrainState drain_state() const {
    return draining() ? v1::DRAIN_STATE_DRAINING : v1::DRAIN_STATE_SERVING;
  }

  const Identity identity_;
  const Memory memory_;
  const BlockStore* const store_;
  const InFlightBytes* const in_flight_;
  const StoreCounters* const counters_;
  const DiskTier* const disk_;
  const DecodeReporter decode_;
  std::atomic<bool> draining_{false};
  mutable absl::Mutex mutex_;
  std::vector<std::string> addresses_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn::node
