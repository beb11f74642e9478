// Sequence: the KV of one running sequence on this node: pinned stored blocks of its prompt, then
// pages of its own, which forks share until one of them writes.
//
//   positions: 0 .. first_token .. covered_tokens .. length_tokens .. capacity_tokens
//               elsewhere    pinned blocks       own pages      reserved
//
// Invariants. Every layer of every slice has its own length; its rows below that are stored. A page
// is written only where this sequence alone uses it, else it is copied first. The reservation has a
// page for each block from that of length_tokens to the capacity's end that is not there or is
// shared, so an append within the capacity does not fail for want of memory. Tokens of the prompt
// are its own; later ones are set by the first layer that sends them.
//
// Not thread-safe. Ends what it holds when destroyed. All positions are within the whole prompt.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cache_node/decode/sequence/append_rows.h"
#include "cache_node/decode/sequence/book_charge.h"
#include "cache_node/decode/sequence/page_reservation.h"
#include "cache_node/decode/sequence/pinned_blocks.h"
#include "cache_node/decode/sequence/sequence_prompt.h"
#include "cache_node/decode/sequence/sequence_seal.h"
#include "cache_node/decode/slot_run.h"
#include "common/base/bytes16.h"
#include "common/identity/block_hasher.h"
#include "common/identity/payload_map.h"
#include "kernels/kv_segment.h"

namespace cairn::node {

using SequenceId = Bytes16<struct SequenceIdTag>;

class Sequence {
 public:
  // What its forks have in common with it.
  struct Common {
    std::string tenant;
    uint64_t writer = 0;
    Fingerprint fingerprint;
    uint64_t epoch = 0;        // Of the namespace's registration.
    bool seal_public = false;  // As of the table's options.
    const PayloadMap* map = nullptr;
    SequencePrompt prompt;
    uint32_t first_block = 0;
    BookCharge charge;
  };

  // `common` is shared with forks, whichever of them ends last. The reservation has the pages of
  // `reserve_tokens` tokens.
  Sequence(const SequenceId& id, std::shared_ptr<const Common> common,
           std::vector<PinnedBlocks::Ref> pins, PageReservation reservation,
           uint64_t reserve_tokens, BookCharge charge);
  ~Sequence();

  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  const SequenceId& id() const { return id_; }
  const Common& common() const { return *common_; }
  const PayloadMap& map() const { return *common_->map; }
  uint64_t first_token() const { return uint64_t{common_->first_block} * block_tokens_; }
  uint64_t covered_tokens() const { return uint64_t{covered_block_} * block_tokens_; }
  // Positions below may be appended.
  uint64_t capacity_tokens() const { return capacity_; }
  // What all layers of all required groups hold.
  uint64_t length_tokens() const;
  // The most that one of them holds.
  uint64_t end_tokens() const { return end_; }
  // REQUIRES: segment < map().segment_count().
  uint64_t LengthOf(size_t segment) const { return lengths_[segment]; }
  // Positions that were given back.
  std::pair<uint64_t, uint64_t> released() const {
    return {uint64_t{released_begin_} * block_tokens_, uint64_t{released_end_} * block_tokens_};
  }
  uint64_t sealed_blocks() const { return sealed_count_; }
  uint64_t reserved_pages() const { return reservation_.pages(); }

  // Where its blocks lie, from the first one on, and how much of them a layer of a slice holds.
  // REQUIRES: the layout has it. Valid until the sequence is changed.
  SlotRun Stored(uint32_t group, uint32_t slice, uint32_t layer) const;

  // Whether all blocks that it pins may be read.
  bool PinsReadable() const;

  // Rows of positions that are stored already are left as they are. Nothing is stored on an error:
  // INVALID_ARGUMENT: malformed, not finite, or other tokens than those known. FAILED_PRECONDITION:
  // behind a hole, or the group takes no rows. RESOURCE_EXHAUSTED: past the reservation.
  absl::Status Append(const AppendRows& rows);

  // Forgets what is at `length` and behind. Where the room for that is shared with forks and there
  // is no more of it, the capacity falls.
  absl::Status Truncate(uint64_t length);

  // Gives back whole blocks below `before`, but for those of the first `sinks` tokens. Answers how
  // many.
  absl::StatusOr<uint64_t> ReleaseWindow(uint64_t before, uint64_t sinks);

  // Pages that one fork needs, and those that this one needs once it shares its last page.
  uint64_t PagesOfFork(uint64_t reserve_tokens) const;
  uint64_t PagesToBeForked() const;
  // A sequence that begins as this one is, as far as all layers hold it. REQUIRES: `pages` are
  // PagesOfFork, and this one was given PagesToBeForked.
  std::unique_ptr<Sequence> Fork(const SequenceId& id, uint64_t reserve_tokens,
                                 PageReservation pages, BookCharge charge) const;
  void AddPages(PageReservation pages) { reservation_.Join(std::move(pages)); }

  // --- Seals ---
  // The next block that is full, with known tokens, and may be published. One at a time.
  bool HasSeal() const;
  // REQUIRES: HasSeal(). False: none of it can be named, and nothing will be.
  bool BeginSeal(const BlockHasher& hasher, SequenceSeal* seal, SealTask* task);
  void EndSeal(SealOutcome outcome);
  // Gives back all but what is still to be published; nothing else may be asked of it then. False:
  // there is nothing.
  bool KeepForSeals();

  absl::Status Audit() const;

 private:
  struct Places;
  static constexpr int64_t kNoToken = -1;

  Sequence(const Sequence& other, const SequenceId& id, uint64_t length, BookCharge charge);

  // sequence_append.cc
  absl::Status CheckPlaces(const AppendRows& rows, Places* places) const;
  absl::Status CheckPositions(const AppendRows& rows, const Places& places) const;
  absl::Status CheckTokens(const AppendRows& rows) const;
  absl::Status MakeWritable(uint64_t first_block, uint64_t last_block);
  void Write(const AppendRows& rows, const Places& places, size_t slice);
  void SetTokens(const AppendRows& rows);
  void SetLength(size_t segment, bool required, uint64_t length);

  // The page of a block of its own; null: it has none.
  PageRef* PageOf(uint64_t block);
  const PageRef* PageOf(uint64_t block) const;
  bool CanWrite(uint64_t block) const;  // There, and not shared but with its own seal.
  bool SealHolds(const PageRef& page) const;
  void PutPage(uint64_t block, PageRef page);
  void DropPage(PageRef page);
  void FindEdge();
  uint64_t PagesNeeded() const;
  void KeepReserved();
  int64_t TokenAt(uint64_t position) const;
  uint64_t later_base() const;

  // sequence_seals.cc
  uint64_t NextSeal() const;
  bool TokensKnown(uint64_t block) const;
  const SequencePrompt::Region& RegionOf(uint64_t block) const;
  std::optional<BlockKey> KeyOf(const BlockHasher& hasher, uint64_t block);
  bool MaySeal(uint64_t block) const;

  const SequenceId id_;
  const std::shared_ptr<const Common> common_;
  const uint32_t block_tokens_;
  const uint32_t covered_block_;
  BookCharge charge_;
  std::vector<PinnedBlocks::Ref> pins_;
  std::vector<PageRef> pages_;  // Of blocks from covered_block_ on.
  PageReservation reservation_;
  std::vector<const std::byte*> slots_;  // Of blocks from the first on: pins, then pages.
  uint64_t capacity_;
  uint64_t end_;
  std::vector<uint64_t> lengths_;      // By segment.
  std::vector<int64_t> later_tokens_;  // Behind the prompt; kNoToken where not known.
  // Required segments that end before `edge_`, the next block edge that not all have reached.
  size_t lagging_ = 0;
  uint64_t edge_ = 0;
  uint32_t released_begin_ = 0;
  uint32_t released_end_ = 0;

  std::vector<BlockKey> later_keys_;  // Of blocks behind the prompt's keys, as far as computed.
  std::vector<bool> sealed_;          // By block from covered_block_ on.
  uint64_t sealed_count_ = 0;
  uint32_t next_seal_;
  bool seals_stopped_ = false;
  SequenceSeal* seal_ = nullptr;  // Under way.
};

}  // namespace cairn::node
