// ReserveOperation: one Reserve, in steps. Answers are closed by prefix: after the first block that
// is neither reserved, present nor in progress nothing later is looked at.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cache_node/store/store_state.h"
#include "cache_node/store/store_types.h"
#include "cache_node/tiers/memory_segment.h"

namespace cairn::node {

class ReserveOperation {
 public:
  // A memory segment to be made anew outside the lock, and given to PutRemade (space_path.h).
  struct Remake {
    SlotClass slot_class;
    uint32_t segment = 0;
    uint64_t bytes = 0;
    std::unique_ptr<MemorySegment> old;
  };

  // All that it borrows outlives it.
  ReserveOperation(absl::string_view tenant, const Fingerprint& fingerprint,
                   const ReserveQuery& query);

  // INVALID_ARGUMENT for what no state of the store would make right.
  static absl::Status Validate(const ReserveQuery& query);

  // Does a bounded part under the exclusive lock; true when done. Call again after what `remake`
  // asks for, until done: it may hold a pin in between.
  bool Step(StoreState* state, absl::Time now);
  std::optional<Remake> TakeRemake();
  // The kernel would not make what TakeRemake asked for.
  void RemakeRefused() { ++refused_remakes_; }

  // After the last step.
  absl::StatusOr<ReserveAnswer> Finish(absl::Duration retry_after);

 private:
  enum class Verdict { kNext, kStop, kAgain };

  absl::Status Begin(StoreState* state, absl::Time now);
  bool Fail(StoreState* state, absl::Status status);
  Verdict Decide(StoreState* state, absl::Time now);
  Verdict ReserveNew(StoreState* state, absl::Time now);
  Verdict TakeSpace(StoreState* state, ClassSpace* space, SlotRef* slot);
  Verdict Refuse(ReserveOutcome outcome);
  // The block that must be there before the one at the cursor; false when it is missing.
  bool FindParent(const StoreState& state, BlockEntry** parent, uint32_t* depth) const;
  bool MakeTokenRoom(StoreState* state) const;
  Token* TokenFor(StoreState* state, absl::Time now);
  absl::Span<const uint32_t> TokensAt(size_t block) const;
  void Release(StoreState* state);

  const absl::string_view tenant_;
  const Fingerprint& fingerprint_;
  const ReserveQuery& query_;
  ReserveAnswer answer_;
  absl::Status status_;

  NamespaceRecord* record_ = nullptr;
  uint64_t epoch_ = 0;
  TenantIndex tenant_index_ = 0;
  PartitionIndex partition_ = 0;
  size_t next_ = 0;
  std::optional<TokenId> token_;
  BlockEntry* held_ = nullptr;  // The parent, pinned while space is looked for.
  std::optional<Remake> remake_;
  uint32_t attempts_ = 0;  // For the block at the cursor.
  uint32_t remakes_ = 0;   // For that block too.
  uint32_t refused_remakes_ = 0;
};

}  // namespace cairn::node
