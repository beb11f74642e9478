// LeaseTable: the read leases that are known, with their readers' shares.
//
// A lease ends when each of its readers has ended its share, or let it expire, or when it is
// revoked; then its blocks are unpinned (in steps, by the store), and it stays known for a while,
// so that the minimum over its readers can be asked for. Not thread-safe: under the store's lock.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cache_node/store/block_entry.h"
#include "cache_node/store/store_types.h"

namespace cairn::node {

struct Lease;

// One block in one lease; in the block's list of those.
struct LeaseLink {
  Lease* lease = nullptr;
  BlockEntry* entry = nullptr;  // Null: it was given back before the lease ended.
  LeaseLink* previous = nullptr;
  LeaseLink* next = nullptr;
};

struct Lease {
  enum class Share : uint8_t { kActive, kEnded, kExpired };
  struct Reader {
    Share share = Share::kActive;
    absl::Time expires;
  };

  bool Active(size_t reader, absl::Time now) const {
    return readers[reader].share == Share::kActive && now < readers[reader].expires;
  }
  // Of all readers, whose expiry by `now` counts.
  bool Complete(absl::Time now) const;
  LeaseStatus StatusAt(absl::Time now) const;
  // Null: it does not hold the block.
  BlockEntry* Find(const BlockKey& key) const;
  // The first expiry of an active share; InfiniteFuture when there is none.
  absl::Time NextExpiry() const;

  LeaseId id;
  TenantIndex tenant = 0;
  NamespaceRecord* name_space = nullptr;
  std::vector<Reader> readers;
  absl::Duration ttl;
  bool revoked = false;
  bool ended = false;            // Its blocks are being given back, or have been.
  bool given_back = false;       // They have been: it holds nothing but its numbers.
  absl::Time forgets;            // Once ended: when it stops being known.
  absl::Time due;                // Its place in the order of what happens next.
  std::vector<uint32_t> leased;  // By prompt: consecutive blocks.
  std::vector<uint32_t> usable;  // By prompt: the minimum over shares that ended.
  // The blocks, each once. Taken back from the end.
  std::deque<LeaseLink> links;
  absl::flat_hash_map<BlockKey, uint32_t> blocks;  // To their places in `links`.
  std::vector<std::vector<uint32_t>> places;       // In `links`, of each prompt's leased blocks.
  UseStamp request = 0;  // Of the lookup that it is for; resumed, of the last.
  bool used = false;     // Once ended: its blocks were, by that request.
};

class LeaseTable {
 public:
  // Shares of all leases together.
  static constexpr size_t kSharesMax = size_t{1} << 20;

  explicit LeaseTable(size_t leases_max) : leases_max_(leases_max) {}

  // Makes room for one more with that many readers, by forgetting those given back, oldest first;
  // false when there is none.
  bool MakeRoom(size_t readers);
  size_t size() const { return leases_.size(); }

  Lease* Add(std::unique_ptr<Lease> lease);
  // Null when unknown, another tenant's, or to be forgotten by `now`.
  Lease* Find(const LeaseId& id, TenantIndex tenant, absl::Time now) const;

  // Leases that have not ended.
  size_t open() const { return open_; }

  // It has ended, and is known until `forgets`.
  void MarkEnded(Lease* lease, absl::Time forgets);
  // Puts the lease where its next expiry (or forgetting) belongs.
  void Reorder(Lease* lease);
  // Its last block was given back.
  void GivenBack(Lease* lease);
  // The lease whose time has come; null when there is none. It must be reordered or erased next.
  Lease* NextDue(absl::Time now) const;
  // It was given back.
  void Erase(Lease* lease);

 private:
  bool Fits(size_t readers) const;

  const size_t leases_max_;
  size_t shares_ = 0;
  size_t open_ = 0;
  absl::flat_hash_map<LeaseId, std::unique_ptr<Lease>> leases_;
  absl::btree_set<std::pair<absl::Time, LeaseId>> due_;
  absl::btree_set<std::pair<absl::Time, LeaseId>> given_back_;  // By `forgets`.
};

}  // namespace cairn::node
