// CommitOperation: one Commit, in steps: first the runs it names, then what is still missing.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cache_node/store/store_state.h"
#include "cache_node/store/store_types.h"

namespace cairn::node {

class CommitOperation {
 public:
  // All that it borrows outlives it.
  CommitOperation(absl::string_view tenant, const TokenId& token, absl::Span<const SegmentRun> runs)
      : tenant_(tenant), token_(token), runs_(runs) {}

  // Does a bounded part; true when done.
  bool Step(StoreState* state, absl::Time now);
  absl::StatusOr<CommitAnswer> Finish();

 private:
  absl::Status Apply(StoreState* state, Token* token, const SegmentRun& run, size_t* steps);
  void ListMissing(const BlockEntry& entry, uint32_t block, size_t* steps);

  const absl::string_view tenant_;
  const TokenId& token_;
  const absl::Span<const SegmentRun> runs_;
  absl::Status status_;
  CommitAnswer answer_;
  size_t next_run_ = 0;
  uint32_t next_block_ = 0;  // Of the listing.
};

}  // namespace cairn::node
