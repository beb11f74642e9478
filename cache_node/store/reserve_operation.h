// ReserveOperation: one Reserve, in steps. Answers are closed by prefix: after the first block that
// is neither reserved, present nor in progress nothing later is looked at.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cache_node/store/space_seeker.h"
#include "cache_node/store/store_state.h"
#include "cache_node/store/store_types.h"

namespace cairn::node {

class ReserveOperation {
 public:
  // All that it borrows outlives it.
  ReserveOperation(absl::string_view tenant, const Fingerprint& fingerprint,
                   const ReserveQuery& query);

  // INVALID_ARGUMENT for what no state of the store would make right.
  static absl::Status Validate(const ReserveQuery& query);

  // Does a bounded part under the exclusive lock; true when done. Call again after what the seeker
  // asks for, until done: it may hold a pin in between.
  bool Step(StoreState* state, absl::Time now);
  SpaceSeeker* seeker() { return &seeker_; }

  // After the last step.
  absl::StatusOr<ReserveAnswer> Finish(absl::Duration retry_after);

 private:
  enum class Verdict { kNext, kStop, kAgain };

  absl::Status Begin(StoreState* state, absl::Time now);
  bool Fail(StoreState* state, absl::Status status);
  Verdict Decide(StoreState* state, absl::Time now);
  Verdict ReserveNew(StoreState* state, absl::Time now);
  Verdict TakeSpace(StoreState* state, ClassSpace* space, const EvictionPolicy::BlockTraits& traits,
                    SlotRef* slot);
  Verdict Decline(StoreState* state);
  Verdict Refuse(ReserveOutcome outcome);
  StayOutcome Stay(StoreState* state) const;
  // The block that must be there before the one at the cursor.
  struct Parent {
    std::optional<ParentId> id;   // None: it is a prompt's first block.
    BlockEntry* entry = nullptr;  // Null: it is only on disk, or there is none.
    uint32_t depth = 0;           // Of the block after it.
    int64_t expires_unix_ms = 0;  // 0: never.
  };
  // False when it is missing.
  bool FindParent(const StoreState& state, Parent* parent) const;
  bool FindIn(const StoreState& state, PartitionIndex partition, const BlockKey& key,
              Parent* parent) const;
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
  UseStamp request_ = 0;                 // From the first new block on.
  uint32_t prompt_blocks_ = 0;           // As far as this reserve goes,
  std::optional<uint32_t> prompt_hits_;  // and before its first new block.
  std::optional<TokenId> token_;
  BlockEntry* held_ = nullptr;  // The parent, pinned while space is looked for.
  SpaceSeeker seeker_;          // For the block at the cursor.
};

}  // namespace cairn::node
