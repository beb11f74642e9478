// HotPrefixes: which prefixes all of whose holders are saturated, and who should get a copy.
//
// Told of each prompt that was routed, it looks at the prompt's prefixes at a few depths: where the
// least busy holder makes a request wait longer than the least busy other node would, by more than
// a copy costs, the prefix was saturated once. A prefix that was so often within the window is
// copied: the deepest that is, from its least busy holder, to the node that rendezvous hashing
// chooses among the least busy. The copy is not pinned; it lives as long as it is used, by the
// node's own eviction. So a prefix that cools is let go by nobody asking for it.
//
// A pure function of what it is told and when: the same in the server and in tests. Bounded: the
// prefixes that were looked at longest ago are forgotten. Not thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "router/replication/copy_budget.h"
#include "router/replication/replication_types.h"

namespace cairn::router {

class HotPrefixes {
 public:
  static constexpr size_t kPrefixesMax = 8192;
  static constexpr size_t kNamespacesMax = 1024;
  // After a copy that did not help the next is the later the more of them there were.
  static constexpr absl::Duration kFruitlessPauseMax = absl::Minutes(1);
  // A node that refuses copies (it has no peers, or we may not ask) is left alone for so long.
  static constexpr absl::Duration kRefusedPause = absl::Minutes(1);

  struct Counters {
    uint64_t saturated_prompts = 0;  // At some depth.
    uint64_t orders = 0;
    uint64_t over_budget = 0;  // Hot prefixes that were not copied for want of budget.
    uint64_t failed = 0;       // Orders that brought nothing.
    uint64_t blocks_copied = 0;
    uint64_t bytes_copied = 0;
    uint64_t bytes_booked = 0;
    uint64_t cooled = 0;  // Prefixes that were copied and were forgotten since.
  };

  explicit HotPrefixes(const ReplicationOptions& options);

  // A copy that is to be made now, and whose end is to be told.
  std::optional<CopyOrder> Observe(const RoutedPrompt& prompt, absl::Time now);
  void EndCopy(const CopyOrder& order, const CopyResult& result, absl::Time now);

  const Counters& counters() const { return counters_; }
  uint64_t outstanding_bytes() const { return static_cast<uint64_t>(budget_.outstanding_bytes()); }
  size_t size() const { return prefixes_.size(); }

 private:
  // By the last block's key.
  struct Prefix {
    std::list<BlockKey>::iterator place;  // In by_use_.
    absl::Time seen;
    double prompts = 0;     // Of the window, fading.
    double saturated = 0;   // Of those.
    absl::Time not_before;  // No copy is ordered sooner.
    bool copied = false;
    // Copies in a row that brought nothing, or went where the last one went and did not stay.
    uint32_t fruitless = 0;
    std::string copied_to;  // By the last that brought something.
  };
  // Of one prompt at one depth.
  struct Standing {
    const RankedReplica* holder = nullptr;  // The least busy.
    const RankedReplica* other = nullptr;
    double extra_seconds = 0;  // That a holder makes a request wait longer.
  };

  std::vector<size_t> DepthsOf(const RoutedPrompt& prompt) const;
  Standing StandingAt(const RoutedPrompt& prompt, uint64_t tokens) const;
  Prefix& Note(const BlockKey& key, bool saturated, absl::Time now);
  const RankedReplica* Destination(const RoutedPrompt& prompt, const BlockKey& key, uint64_t tokens,
                                   const Standing& standing, absl::Time now) const;
  std::optional<CopyOrder> Order(const RoutedPrompt& prompt, size_t blocks,
                                 const Standing& standing, absl::Time now);
  double BytesPerToken(const Fingerprint& fingerprint) const;
  void DropOldest();
  // What the copy moved, or must have where its calls could not tell.
  uint64_t MovedBytes(const CopyOrder& order, const CopyResult& result) const;
  static void Judge(const CopyOrder& order, const CopyResult& result, absl::Time now,
                    Prefix* prefix);

  const ReplicationOptions options_;
  CopyBudget budget_;
  absl::flat_hash_map<BlockKey, Prefix> prefixes_;
  std::list<BlockKey> by_use_;  // The most recently looked at first.
  absl::flat_hash_map<Fingerprint, double> bytes_per_token_;
  absl::flat_hash_map<std::string, absl::Time> refused_until_;  // By node id.
  uint64_t next_order_ = 1;
  Counters counters_;
};

}  // namespace cairn::router
