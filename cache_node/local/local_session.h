// LocalSession: what one connection on the local socket may ask, and what it holds, without
// sockets.
//
// For one caller and tenant. Holds shares that are read in place, loans of memory segments and
// staging memory. The destructor closes the shares and frees the staging memory; what becomes of
// the loans is for its owner to say (BorrowerGone or ReturnAllSegments), who knows what the client
// said. One thread at a time. Everything in a request comes from outside and is checked. Borrows
// its parts.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cache_node/local/local_counters.h"
#include "cache_node/local/staging_area.h"
#include "cache_node/store/block_store.h"
#include "cache_node/tenants/tenant_rates.h"
#include "cairn/v1/local.pb.h"
#include "common/base/guarded_time.h"
#include "common/rpc/caller_identity.h"

namespace cairn::node {

class LocalSession {
 public:
  struct Parts {
    BlockStore* store = nullptr;
    TenantRates* rates = nullptr;
    StagingBudget* staging = nullptr;
    LocalCounters* counters = nullptr;
    const GuardedTime* time = nullptr;
    const std::atomic<bool>* draining = nullptr;  // No new leases and staging memory.
  };

  LocalSession(const Parts& parts, Caller caller, BorrowerId borrower);
  ~LocalSession();

  LocalSession(const LocalSession&) = delete;
  LocalSession& operator=(const LocalSession&) = delete;

  // What goes back: nothing for requests that are not answered.
  struct Reply {
    std::unique_ptr<v1::LocalAnswer> answer;
    // Their descriptors go along, in this order; owned until they were sent.
    std::vector<LentSegment> segments = {};
    // Its descriptor goes along; shared with the session, which may let go of it meanwhile.
    std::shared_ptr<const StagingArea> staging = nullptr;
  };
  // A request other than hello. A failure is an answer.
  Reply Handle(const v1::LocalRequest& request);

  // Any thread.
  void DropIdleStaging(absl::Time now) ABSL_LOCKS_EXCLUDED(staging_mutex_);

  const Caller& caller() const { return caller_; }
  BorrowerId borrower() const { return borrower_; }

 private:
  // One connection may read several shares of one lease.
  using ShareId = std::pair<LeaseId, uint32_t>;  // The lease, and the number of its reader.
  // Of a lease that the node took for a read, or of another that is held.
  struct Share {
    uint32_t blocks = 0;  // Leading ones that the lease covers.
    bool counts = false;  // Of a read of consecutive blocks: its end says what was of use.
  };

  absl::Status Read(const v1::LocalRead& request, Reply* reply);
  // Takes a lease on what is in host memory; the answer's states are those of the keys.
  absl::StatusOr<LookupAnswer> Lease(const v1::LocalRead& request, const Fingerprint& fingerprint,
                                     absl::Span<const BlockKey> keys);
  absl::Status AddPlaces(absl::Span<const BlockKey> keys, const LeaseId& lease, uint32_t reader,
                         bool hold, v1::LocalPlaces* places, Reply* reply);
  // Gives the block's memory segment where the connection does not have it; false when it cannot.
  bool Give(const InPlaceBlock& block, v1::LocalPlaces* places, Reply* reply);
  // Remembers it until it ends, or closes it where there are too many.
  absl::Status Hold(const ShareId& id, const Share& share);
  void DropEndedShares();
  void End(const v1::LocalEnd& request);
  void Unmapped(const v1::LocalUnmapped& request);
  absl::Status Stage(const v1::LocalStage& request, Reply* reply);
  absl::Status Put(const v1::LocalPut& request, Reply* reply);
  absl::Status Land(const TokenId& token, const v1::LocalPiece& piece,
                    absl::Span<const uint8_t> staging,
                    google::protobuf::RepeatedField<uint64_t>* digests);

  const Parts parts_;
  const Caller caller_;
  const BorrowerId borrower_;
  absl::flat_hash_map<ShareId, Share> shares_;
  absl::flat_hash_set<uint64_t> given_;  // Memory segments that the client may have mapped.
  mutable absl::Mutex staging_mutex_;
  // Shared with a put that is under way when its time is over.
  std::shared_ptr<StagingArea> staging_ ABSL_GUARDED_BY(staging_mutex_);
  absl::Time staging_used_ ABSL_GUARDED_BY(staging_mutex_);
};

}  // namespace cairn::node
