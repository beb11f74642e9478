// LocalLink: one client's connection to the local socket of its node, when both are on one host.
//
// Connects at the first call that wants it, and again after it broke; in between, and where there
// is nothing to connect to, it answers UNAVAILABLE at once, and tries again after a while that
// grows. Owns what is mapped, but for what views still look at. Thread-safe: one exchange at a
// time, others wait for it a little. Borrows the link.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cairn/v1/local.pb.h"
#include "client/cpp/local/local_stats.h"
#include "client/cpp/local/mapped_segment.h"
#include "common/base/bytes16.h"
#include "common/base/clock.h"
#include "common/local/packet_socket.h"

namespace cairn {

class NodeLink;

class LocalLink {
 public:
  LocalLink(const NodeLink* link, const Clock* clock) : link_(link), clock_(clock) {}
  // Says that everything is unmapped, if it is.
  ~LocalLink();

  LocalLink(const LocalLink&) = delete;
  LocalLink& operator=(const LocalLink&) = delete;

  // One block of an answer: where it lies, or why not.
  struct Place {
    v1::BlockState state = v1::BLOCK_STATE_UNSPECIFIED;  // UNSPECIFIED: it is there.
    std::shared_ptr<const MappedSegment> segment;  // Shared with the link, and outlives recalls.
    uint32_t slot = 0;
    uint64_t generation = 0;
    std::vector<uint64_t> digests;  // By segment of the block.
    std::vector<uint32_t> absent;
  };
  struct Places {
    std::optional<LeaseId> lease;
    std::vector<Place> places;  // One a key.
  };
  // Calls wait for the node no longer than to `deadline`, a time of the clock, and a second (a Put:
  // five) in any case: what is not answered by then is UNAVAILABLE, and the connection is over.
  absl::Time Deadline(absl::Duration within) const { return clock_->SteadyNow() + within; }
  absl::Duration TimeTo(absl::Time deadline) const { return deadline - clock_->SteadyNow(); }
  // What is left for the channel; never nothing, since a call whose time is over says so itself.
  absl::Duration LeftFor(absl::Time deadline) const {
    return std::max(TimeTo(deadline), absl::Milliseconds(1));
  }

  // UNAVAILABLE: there is no local path now. Otherwise as the node says.
  absl::StatusOr<Places> Read(const v1::LocalRead& request, absl::Time deadline);
  // Best effort.
  void End(const LeaseId& lease, uint32_t usable_blocks);

  // Staging memory of at least so many bytes, kept from call to call; one user at a time.
  class Staging {
   public:
    Staging() = default;
    Staging(LocalLink* link, absl::Span<uint8_t> bytes) : link_(link), bytes_(bytes) {}
    Staging(Staging&& other) noexcept;
    Staging& operator=(Staging&& other) noexcept;
    ~Staging();
    absl::Span<uint8_t> bytes() const { return bytes_; }

   private:
    LocalLink* link_ = nullptr;
    absl::Span<uint8_t> bytes_;
  };
  absl::StatusOr<Staging> TakeStaging(uint64_t bytes, absl::Time deadline);
  // REQUIRES: the caller has the staging memory.
  absl::StatusOr<v1::LocalLanded> Put(const v1::LocalPut& request, absl::Time deadline);

  LocalStats stats() const;
  void CountFallback() { fallbacks_.fetch_add(1, std::memory_order_relaxed); }
  void CountInPlace(uint64_t blocks) { in_place_.fetch_add(blocks, std::memory_order_relaxed); }
  void CountCopied(uint64_t blocks, uint64_t bytes);
  void CountStaged(uint64_t bytes) { staged_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  void CountChanged() { changed_.fetch_add(1, std::memory_order_relaxed); }

 private:
  // The right to use the connection: held by one thread, and no lock.
  class Turn {
   public:
    Turn(LocalLink* link, absl::Time deadline);
    ~Turn();
    explicit operator bool() const { return has_; }

   private:
    LocalLink* const link_;
    bool has_ = false;
  };
  struct StagingMemory {
    absl::Span<uint8_t> bytes;
    StagingMemory() = default;
    explicit StagingMemory(absl::Span<uint8_t> mapped) : bytes(mapped) {}
    ~StagingMemory();
  };

  // These are for who has the turn.
  absl::Status Connect(absl::Time deadline);
  absl::Status ConnectNow(absl::Time deadline);
  absl::Status Exchange(const v1::LocalRequest& request, absl::Time deadline,
                        v1::LocalAnswer* answer, std::vector<Descriptor>* descriptors);
  // Once more over a new connection, where the old one was dead.
  absl::Status ExchangeAgain(const v1::LocalRequest& request, absl::Time deadline,
                             v1::LocalAnswer* answer, std::vector<Descriptor>* descriptors);
  absl::Status Send(const v1::LocalRequest& request);
  absl::Status Receive(absl::Time deadline, v1::LocalAnswer* answer,
                       std::vector<Descriptor>* descriptors);
  absl::Status MapStaging(uint64_t bytes, absl::Time deadline);
  absl::Status TakeSegments(const v1::LocalPlaces& places, std::vector<Descriptor> descriptors);
  // Null when it is not mapped.
  std::shared_ptr<const MappedSegment> SegmentOf(uint64_t id) const;
  void Recall(const v1::LocalRecall& recall);
  // Tells the node what nobody looks at any more, of what it wants back.
  void ReturnUnused();
  // The connection is over: what was mapped goes when its last view does.
  void Drop();
  void Failed();

  const NodeLink* const link_;
  const Clock* const clock_;

  absl::Mutex mutex_;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  bool staging_taken_ ABSL_GUARDED_BY(mutex_) = false;

  // Of who has the turn:
  PacketSocket socket_;
  std::string buffer_;
  std::string connection_;  // Its name; kept after it is over, until the node was told.
  absl::flat_hash_map<uint64_t, std::shared_ptr<const MappedSegment>> segments_;
  absl::flat_hash_map<uint64_t, std::shared_ptr<const MappedSegment>> recalled_;
  std::vector<std::weak_ptr<const MappedSegment>> stale_;  // Of connections that are over.
  std::unique_ptr<StagingMemory> staging_;
  std::string staging_connection_;  // Whose it is.
  absl::Time staging_used_;
  absl::Time retry_at_ = absl::InfinitePast();
  absl::Duration backoff_ = absl::ZeroDuration();

  std::atomic<bool> connected_{false};
  std::atomic<uint64_t> connects_{0};
  std::atomic<uint64_t> fallbacks_{0};
  std::atomic<uint64_t> in_place_{0};
  std::atomic<uint64_t> copied_{0};
  std::atomic<uint64_t> copied_bytes_{0};
  std::atomic<uint64_t> staged_bytes_{0};
  std::atomic<uint64_t> changed_{0};
};

}  // namespace cairn
