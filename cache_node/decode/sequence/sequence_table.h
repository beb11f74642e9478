// SequenceTable: the running sequences of a node: who may use which, how much they may take
// together, and when they end.
//
// Not thread-safe: one thread at a time, the decode engine's. Never waits; what it holds is
// bounded by its options. A sequence ends by Close, by not being used for its idle time, when its
// namespace is retired, and when a block that it pins is removed (deleted, cleared, quarantined,
// purged); then all that it held comes back at once, but for a page that is being sealed, which
// comes back with FinishSeal. One that is closed keeps full pages that are still to be sealed, for
// a short while, and as long as nobody needs their room. Room for tokens is reserved at the
// opening, all or nothing, until the end: nothing is taken from a running sequence for another.
//
// ABORTED: a sequence that is unknown, ended or another tenant's, all alike. RESOURCE_EXHAUSTED:
// no room; try again later. FAILED_PRECONDITION: namespace or layout.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cache_node/decode/sequence/append_rows.h"
#include "cache_node/decode/sequence/book_charge.h"
#include "cache_node/decode/sequence/page_pool.h"
#include "cache_node/decode/sequence/pinned_blocks.h"
#include "cache_node/decode/sequence/sequence.h"
#include "cache_node/decode/sequence/sequence_numbers.h"
#include "cache_node/decode/sequence/sequence_prompt.h"
#include "cache_node/decode/sequence/sequence_seal.h"
#include "cache_node/store/block_store.h"
#include "common/base/guarded_time.h"
#include "common/base/random_source.h"
#include "common/identity/block_hasher.h"
#include "common/wire/decode_limits.h"

namespace cairn::node {

class SequenceTable {
 public:
  static constexpr size_t kStepsPerTick = 256;  // Sequences looked at.
  // Of one sequence, in all; so that sums do not overflow.
  static constexpr uint64_t kTokensMax = uint64_t{1} << 26;
  static constexpr size_t kClosingMax = 256;  // Closed ones with something to be sealed.

  struct Options {
    PagePool::Options pages;                       // 0 bytes: there are no sequences.
    PinnedBlocks::Options pins;                    // 0 bytes: sequences are tails alone.
    uint64_t book_bytes_max = uint64_t{64} << 20;  // Lengths, tokens, keys and tables.
    uint32_t sequences_max = 65536;
    uint32_t seals_max = 8;  // Under way.
    absl::Duration idle_default = absl::Minutes(1);
    absl::Duration seal_retry_after = absl::Seconds(1);
    absl::Duration seal_after_close = absl::Seconds(5);
    bool seal_public = false;  // Whoever acts for the tenant `public` may write its blocks.
  };

  struct Opening {
    std::string tenant;
    uint64_t writer = 0;  // Provenance of what is sealed.
    Fingerprint fingerprint;
    const PayloadMap* map = nullptr;  // Of the store.
    SequencePrompt prompt;
    uint32_t first_block = 0;
    std::vector<BlockPin> pins;  // Consecutive blocks of the prompt from first_block on.
    uint64_t reserve_tokens = 0;
    absl::Duration idle;  // Zero: the default.
  };

  // Borrows what outlives it. `counters` are the store's.
  SequenceTable(const Options& options, const BlockStore* store, const StoreCounters* counters,
                const GuardedTime* time, RandomSource* random, const BlockHasher* hasher);
  // Seals that are under way must have been finished.
  ~SequenceTable();

  SequenceTable(const SequenceTable&) = delete;
  SequenceTable& operator=(const SequenceTable&) = delete;

  // --- Whole sequences ---
  struct Opened {
    SequenceId id;
    uint64_t first_token = 0;
    uint64_t covered_tokens = 0;
    uint64_t reserved_tokens = 0;
    absl::Duration idle;
  };
  // Also ABORTED: a pinned block was removed meanwhile.
  absl::StatusOr<Opened> Open(Opening opening);

  struct Forked {
    std::vector<SequenceId> ids;
    uint64_t length_tokens = 0;
  };
  // REQUIRES: 1 <= count <= kForksMax. All or none.
  absl::StatusOr<Forked> Fork(absl::string_view tenant, const SequenceId& id, uint32_t count,
                              uint64_t reserve_tokens);
  // Answers what all layers hold then.
  absl::StatusOr<uint64_t> Truncate(absl::string_view tenant, const SequenceId& id,
                                    uint64_t length_tokens);
  // Answers how many blocks were given back.
  absl::StatusOr<uint64_t> ReleaseWindow(absl::string_view tenant, const SequenceId& id,
                                         uint64_t before_token, uint64_t sink_tokens);
  // Answers how many there were; unknown ones and others' are none.
  size_t Close(absl::string_view tenant, absl::Span<const SequenceId> ids);

  // --- Steps ---
  // The sequence, when it may be read now; counts as a use. Cheap while nothing was removed from
  // the store. Asked again after a result was computed, so that none is from removed blocks. Valid
  // until a sequence is opened, forked or ended.
  absl::StatusOr<const Sequence*> Find(absl::string_view tenant, const SequenceId& id);
  // REQUIRES: Find answered it since anything else was called.
  absl::Status Append(const Sequence* sequence, const AppendRows& rows);

  // --- Seals: what a mover asks and reports ---
  // Blocks to be published now; the page's room for copying is taken, or it waits.
  std::vector<SealTask> TakeSeals(size_t max);
  void FinishSeal(uint64_t serial, SealOutcome outcome);
  // Whether TakeSeals may have something, now or after a while.
  bool SealsWait() const { return !seal_queue_.empty() || !seal_retries_.empty(); }

  // Ends what is due: a bounded number a call; called every few tens of milliseconds.
  void Tick();
  // All end: for a node that drains.
  void CloseAll();

  DecodeNumbers Numbers() const;
  // O(n): INTERNAL names what does not agree.
  absl::Status Audit() const;

 private:
  struct Record {
    std::unique_ptr<Sequence> sequence;
    absl::Duration idle;
    absl::Time deadline;
    absl::Time due;            // Its place in `due_`: at most the deadline.
    uint64_t revocations = 0;  // Of the store, when it was last found readable.
    bool seal_queued = false;  // Or waits to be queued again.
    bool closing = false;
  };
  using Records = absl::flat_hash_map<SequenceId, std::unique_ptr<Record>>;

  absl::Status CheckOpening(const Opening& opening) const;
  absl::StatusOr<Record*> FindRecord(absl::string_view tenant, const SequenceId& id);
  bool Readable(Record* record);
  Record* Add(std::unique_ptr<Sequence> sequence, absl::Duration idle, uint64_t revocations);
  void End(Records::iterator it);
  absl::Status Refused(absl::Status status);
  uint64_t BookBytes(const PayloadMap& map, uint64_t blocks, uint64_t tokens) const;
  uint64_t Revocations() const;
  void Counted(const Sequence& sequence, int sign);
  void Close(Records::iterator it);
  bool DropClosing();
  Record* FindForSeals(const SequenceId& id);
  void QueueSeal(Record* record);
  bool TakeSeal(Record* record, SealTask* task);
  void RetrySeal(Record* record);
  void TrimSeals();
  void SweepRevoked(size_t steps);

  const Options options_;
  const BlockStore* const store_;
  const StoreCounters* const counters_;
  const GuardedTime* const time_;
  RandomSource* const random_;
  const BlockHasher* const hasher_;

  PagePool pages_;
  PinnedBlocks pins_;
  BookBudget book_;
  Records records_;
  Records closing_;
  absl::btree_set<std::pair<absl::Time, SequenceId>> due_;
  absl::flat_hash_map<uint64_t, std::unique_ptr<SequenceSeal>> seals_;  // Under way, by serial.
  uint64_t seal_serial_ = 0;
  std::deque<SequenceId> seal_queue_;
  std::deque<std::pair<absl::Time, SequenceId>> seal_retries_;  // In order of time.
  uint64_t swept_ = 0;               // Revocations up to which all sequences were looked at,
  std::deque<SequenceId> to_sweep_;  // and those still to be.
  uint64_t tokens_open_ = 0;         // That may still be appended.
  const PayloadMap* last_opened_ = nullptr;
  DecodeNumbers numbers_;  // Those that only rise.
};

}  // namespace cairn::node
