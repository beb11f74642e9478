// SegmentLoans: which memory segments were given to readers of this host, and which of them are to
// come back.
//
// A borrower is one connection. What it was given it has until it says that it unmapped it; that
// its connection ended says nothing. A segment that is to be made anew while somebody has it is
// away: its memory stays until the last borrower gave it back. Borrowers that are gone without a
// word keep theirs as `unreturned`, until somebody knows that their process ended. Not thread-safe:
// under the store's lock; what Return hands out is destroyed outside.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "cache_node/tiers/generation_page.h"
#include "cache_node/tiers/memory_segment.h"
#include "cache_node/tiers/slot_class.h"

namespace cairn::node {

// One connection of a reader, for as long as it may have memory. Never used again.
using BorrowerId = uint64_t;

// A memory segment that a borrower is to give back.
struct SegmentRecall {
  BorrowerId borrower = 0;
  uint64_t segment = 0;  // Its id.
};

class SegmentLoans {
 public:
  struct Counts {
    uint64_t lent_segments = 0;     // That at least one borrower has.
    uint64_t recalled_bytes = 0;    // Away, and a borrower that is there was asked for it.
    uint64_t unreturned_bytes = 0;  // Away, and only borrowers that are gone have it.
  };
  // A segment that is not away any more: its place in the pool, and its memory.
  struct Returned {
    uint32_t index = 0;
    std::unique_ptr<MemorySegment> memory;
    std::unique_ptr<GenerationPage> generations;
  };

  bool IsLent(uint64_t segment) const { return loans_.contains(segment); }
  // Segments that are away, and that somebody who is there will give back.
  uint32_t recalls() const;
  Counts counts() const;
  // That are away because borrowers of this tenant, there or gone, have them.
  uint64_t AwayFor(TenantIndex tenant) const;

  // Once more is fine. `tenant` is the borrower's, always the same.
  void Lend(uint64_t segment, BorrowerId borrower, TenantIndex tenant);
  // The segment at `index` of the pool is to be made anew: asks its borrowers for it. REQUIRES: it
  // is lent, and not away.
  void Recall(uint64_t segment, uint32_t index, std::unique_ptr<MemorySegment> memory,
              std::unique_ptr<GenerationPage> generations);
  // Who is to be asked, since the last call.
  std::vector<SegmentRecall> TakeRecalls();

  // It has unmapped these; what it was never given is of no account. Answers what is not away any
  // more.
  std::vector<Returned> Return(BorrowerId borrower, absl::Span<const uint64_t> segments);
  std::vector<Returned> ReturnAll(BorrowerId borrower);
  // Its connection is over, and it did not say what it unmapped. False: it has nothing.
  bool Gone(BorrowerId borrower);

 private:
  struct Loan {
    absl::flat_hash_set<BorrowerId> borrowers;
    uint32_t present = 0;  // Borrowers that are not gone.
    // Away: what is to be freed, and where it belongs.
    std::unique_ptr<MemorySegment> memory;
    std::unique_ptr<GenerationPage> generations;
    uint32_t index = 0;
  };
  struct Borrower {
    absl::flat_hash_set<uint64_t> segments;
    TenantIndex tenant = 0;
    bool gone = false;
  };

  std::optional<Returned> Take(BorrowerId borrower, const Borrower& from, uint64_t segment);

  absl::flat_hash_map<uint64_t, Loan> loans_;
  absl::flat_hash_map<BorrowerId, Borrower> borrowers_;
  std::vector<SegmentRecall> recalls_;
};

}  // namespace cairn::node
