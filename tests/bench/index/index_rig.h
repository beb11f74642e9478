// IndexRig: the router's index with what its feeds go through, without network, threads or locks.
//
// A record goes the way of the product: HolderFeed::Apply with a parsed BlockBatch (which is filled
// in here, inside what is timed), FeedTracker's checks and digests, SpeculativeBlocks::Fed,
// PartitionTable::Intern, BlockHolders::Set. A lookup is PartitionTable::Find for the caller's
// tenant and public, and BlockHolders::Match. Not timed: parsing of messages off the wire. Not
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "cairn/v1/feed.pb.h"
#include "common/base/bytes16.h"
#include "common/identity/fingerprint.h"
#include "router/feed/holder_feed.h"
#include "router/index/block_holders.h"
#include "router/index/namespace_directory.h"
#include "router/index/partition_table.h"
#include "router/index/speculative_blocks.h"

namespace cairn::bench {

inline constexpr uint8_t kBenchTier = 2;  // Host.
inline constexpr char kBenchTenant[] = "acme";
Fingerprint BenchFingerprint();

// The hello of a bench's holder, and the fields that all of its batches have.
v1::WatchBlocksResponse BenchHello(router::HolderIndex holder, uint32_t shards);
v1::WatchBlocksResponse BenchBatch();
// That its namespace is registered.
v1::WatchBlocksResponse BenchNamespace(uint32_t block_tokens);

class IndexRig {
 public:
  IndexRig(size_t holders, uint32_t shards, size_t slots_max);

  IndexRig(const IndexRig&) = delete;
  IndexRig& operator=(const IndexRig&) = delete;

  // As many blocks as the holder with the longest match has.
  uint32_t Lookup(absl::Span<const BlockKey> keys) const;

  // Records of one shard: `held` is 1 where the block is there now, 0 where it is gone.
  void Feed(router::HolderIndex holder, uint32_t shard, absl::Span<const BlockKey> keys,
            absl::Span<const uint8_t> held);
  // The shard's whole content, as the one batch of a snapshot.
  void Snapshot(router::HolderIndex holder, uint32_t shard, absl::Span<const BlockKey> keys);
  // The holder's node died and comes back as another run, with nothing.
  void Restart(router::HolderIndex holder);

  // All that a tick would free, at once.
  void SweepAll() { blocks_.Sweep(router::BlockHolders::kStripes); }

  size_t slot_count() const { return blocks_.slot_count(); }

 private:
  void Begin(router::HolderIndex holder);
  void Apply(router::HolderIndex holder);

  const uint32_t shards_;
  router::PartitionTable partitions_;
  router::NamespaceDirectory namespaces_;
  router::SpeculativeBlocks speculative_;
  router::BlockHolders blocks_;
  std::vector<std::unique_ptr<router::HolderFeed>> feeds_;
  std::vector<uint64_t> sequences_;  // By holder and shard.
  std::vector<uint32_t> runs_;       // By holder.
  std::vector<bool> usable_;
  const Fingerprint fingerprint_ = BenchFingerprint();
  v1::WatchBlocksResponse message_ = BenchBatch();  // Filled in again for each batch.
};

}  // namespace cairn::bench
