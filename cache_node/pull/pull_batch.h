// PullBatch: a few consecutive blocks from one peer: asked about, reserved, fetched, published.
//
//   Describe -> (Promote -> Describe) -> Reserve, by runs of one scope and writer -> Fetch ->
//   Commit
//
// What is known of a block comes from the source, which checked it when it was written: its scope,
// parent, tokens, writer and end. Here the tenant's budgets hold as for any reserve, and digests
// are checked again. Leaves no token behind that is not spent. Used once; not thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cache_node/pull/byte_rate.h"
#include "cache_node/pull/pull_fences.h"
#include "cache_node/pull/pull_landing.h"
#include "cache_node/pull/pull_metrics.h"
#include "cache_node/pull/pull_source.h"
#include "cache_node/pull/pull_types.h"
#include "cache_node/store/block_store.h"
#include "cache_node/tenants/public_scope.h"
#include "cache_node/tenants/tenant_rates.h"
#include "client/cpp/retry_wait.h"

namespace cairn::node {

class PullBatch {
 public:
  // Borrowed.
  struct Parts {
    BlockStore* store = nullptr;
    const PullFences* fences = nullptr;
    ByteRate* rate = nullptr;
    RetryWait* wait = nullptr;                  // False: the node stops.
    TenantRates* rates = nullptr;               // Null: no tenant has a limit.
    const PublicScope* public_scope = nullptr;  // Null: the tenant `public` is one like others.
    std::atomic<uint64_t>* next_writer = nullptr;
    PullMetrics metrics;
  };

  // `keys` are what to pull now; `listed`, which they are of, is what an operator's list of public
  // prefixes must know the end of.
  PullBatch(const Parts& parts, const PullTarget& target, PullSource* source,
            absl::Span<const BlockKey> keys, absl::Span<const BlockKey> listed);

  // How the source failed, if it did. Outcomes are set whatever it says.
  absl::Status Run();
  const std::vector<PullOutcome>& outcomes() const { return outcomes_; }

 private:
  absl::Status Describe();
  // Up to the first block that the source has not, or that must not come.
  size_t Usable();
  // Blocks [first, end) of one scope, writer and retention: one token's. False: nothing later is to
  // be reserved.
  bool ReserveRun(size_t first, size_t end);
  ReserveQuery QueryOf(size_t first, size_t end) const;
  bool NoteAnswer(size_t first, const ReserveAnswer& answer);
  absl::Status Fetch();
  absl::Status CheckPublic() const;
  bool SameRun(size_t a, size_t b) const;
  const BlockScope& ScopeOf(size_t block) const {
    return records_.scopes[records_.blocks[block].scope];
  }

  const Parts parts_;
  const PullTarget& target_;
  PullSource* const source_;
  const absl::Span<const BlockKey> keys_;
  const absl::Span<const BlockKey> listed_;
  const PayloadMap* map_ = nullptr;
  BlockRecords records_;
  std::vector<PullOutcome> outcomes_;
  std::vector<PullLanding::Block> wanted_;
  std::vector<size_t> wanted_index_;  // In keys_.
};

}  // namespace cairn::node
