// HolderFeed: what one holder says of itself, over all streams that its address ever had.
//
// A state machine over the messages of WatchBlocks; time is an argument, on the guarded clock, so
// that a process that was stopped does not take its holders for silent. What the feed says goes to
// the index, which is the core's. A stream begins with its hello. One of the same incarnation keeps
// what is held until each shard is replaced; another incarnation forgets all of the old at once.
// Not thread-safe: under the core's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cairn/v1/feed.pb.h"
#include "router/feed/block_sink.h"
#include "router/feed/feed_tracker.h"
#include "router/feed/holder_state.h"
#include "router/ids.h"
#include "router/index/block_holders.h"
#include "router/index/namespace_directory.h"
#include "router/index/partition_table.h"
#include "router/index/speculative_blocks.h"

namespace cairn::router {

struct FeedOptions {
  // Without a message of any kind for so long.
  absl::Duration degraded_after = absl::Seconds(1);
  absl::Duration out_after = absl::Seconds(2);
  ResyncOptions resync;
};

// What feeds write to; all outlive the feeds.
struct FeedTargets {
  BlockHolders* blocks = nullptr;
  SpeculativeBlocks* speculative = nullptr;
  NamespaceDirectory* namespaces = nullptr;
  PartitionTable* partitions = nullptr;
};

class HolderFeed {
 public:
  static constexpr size_t kNodeAddressesMax = 16;

  HolderFeed(HolderIndex holder, const FeedOptions& options, const FeedTargets& targets);

  HolderFeed(const HolderFeed&) = delete;
  HolderFeed& operator=(const HolderFeed&) = delete;

  // INVALID_ARGUMENT when a hello is not of this contract.
  static absl::Status CheckHello(const v1::NodeInfo& hello);

  // Takes the next message. When it breaks the contract or a bound, its status says how, and the
  // stream counts as broken: the caller ends it.
  absl::Status Apply(const v1::WatchBlocksResponse& message, absl::Time now);
  // The same in pieces of at most `records_max` records of a batch: `taken` is 0 at first, and is
  // left at how many are done. True when the message is. Between pieces the caller may let go of
  // the lock; if Forget was called then, the rest of the message is refused.
  absl::StatusOr<bool> ApplyPiece(const v1::WatchBlocksResponse& message, size_t records_max,
                                  size_t* taken, absl::Time now);
  // The stream ended, or could not be made.
  void Broke();
  // Its node moved to another address: nothing of it is held here any more.
  void Forget();

  HolderState StateAt(absl::Time now) const;
  // Streaming, with all snapshots in.
  bool SnapshotsIn() const {
    return tracker_ != nullptr && tracker_->AllShardsIn() && !midway_;
  }
  // A stream has begun and not ended.
  bool streaming() const { return tracker_ != nullptr; }

  // Shards to ask for again now.
  std::vector<uint32_t> TakeResyncs(absl::Time now);

  // As last said; nothing before the first hello.
  const std::optional<v1::NodeInfo>& node() const { return node_; }
  const std::optional<v1::LoadReport>& load() const { return load_; }

 private:
  // Puts the records of this holder into the index.
  class IndexSink final : public BlockSink {
   public:
    IndexSink(HolderIndex holder, const FeedTargets& targets)
        : holder_(holder), targets_(targets) {}
    absl::StatusOr<uint32_t> OwnerOf(const Fingerprint& fingerprint,
                                     absl::string_view tenant) override;
    void Expect(const BlockKey& key) override { targets_.blocks->Expect(key); }
    std::optional<uint8_t> Set(uint32_t owner, const BlockKey& key, uint8_t tiers) override;
    void ClearShard(uint32_t shard) override;

   private:
    const HolderIndex holder_;
    const FeedTargets targets_;
  };

  absl::StatusOr<bool> Dispatch(const v1::WatchBlocksResponse& message, size_t records_max,
                                size_t* taken, absl::Time now);
  absl::Status DispatchWhole(const v1::WatchBlocksResponse& message, absl::Time now);
  absl::Status ApplyHello(const v1::NodeInfo& hello);
  absl::Status ApplyNamespace(const v1::NamespaceRecord& record);
  absl::Status ApplyHeartbeat(const v1::Heartbeat& heartbeat, absl::Time now);

  const HolderIndex holder_;
  const FeedOptions options_;
  const FeedTargets targets_;
  IndexSink sink_;
  std::optional<v1::NodeInfo> node_;
  std::optional<v1::LoadReport> load_;
  bool disk_accounted_ =
      true;  // What the feed says of the disk tier is all that can be read there.
  std::unique_ptr<FeedTracker> tracker_;  // Of the stream; none while there is none.
  bool midway_ = false;  // More pieces of the last message are to come.
  absl::Time last_message_at_ = absl::InfinitePast();
};

}  // namespace cairn::router
