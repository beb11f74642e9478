// LookupOperation: one Lookup, in steps, so that a long one lets others have the lock.
//
// Plain lookups only read: Step runs under a shared lock. A lookup that leases or loads, and the
// touching after a plain one, change state: StepHold and StepTouch run under the exclusive lock. If
// the namespace is retired between two steps the answer becomes that of an unknown one.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cache_node/store/space_seeker.h"
#include "cache_node/store/store_state.h"
#include "cache_node/store/store_types.h"

namespace cairn::node {

// Why a block is not there, of one that was.
BlockState StateOfRemoved(RemovalReason reason);

class LookupOperation {
 public:
  // All that it borrows outlives it.
  LookupOperation(absl::string_view tenant, const Fingerprint& fingerprint,
                  const LookupQuery& query);

  // Each does a bounded part, and says whether all of it is done.
  bool Step(const StoreState& state, absl::Time now);
  // Instead of Step for a lease, after it where Step found blocks to be loaded. Call again after
  // what the seeker asks for, until done: it may hold a pin in between.
  bool StepHold(StoreState* state, absl::Time now);
  SpaceSeeker* seeker() { return &seeker_; }
  // After Step is done: blocks that are to be loaded (promote).
  bool wants_loads() const { return wants_loads_; }
  // After these, of a lookup that is a request: policies are told what it missed, and working sets
  // what it asked for.
  bool StepSeen(StoreState* state);
  // After StepSeen, as policies hear of misses before uses.
  bool StepTouch(StoreState* state);
  bool IsRequest() const { return query_.counted && (query_.lease.has_value() || query_.touch); }

  // After the last step.
  LookupAnswer Finish(StoreCounters* counters);

  // Instead of all these: the first block alone, uncounted. Null when it cannot be read from host
  // memory.
  BlockEntry* FindOne(const StoreState& state, absl::Time now);
  const BlockAnswer& FirstAnswer() const { return answer_.prompts[0].blocks[0]; }

 private:
  // Where the block at the cursor is.
  struct Found {
    BlockEntry* entry = nullptr;    // In host memory, readable.
    BlockEntry* pending = nullptr;  // Reserved or loading.
    StoreState::Copy copy = {};     // Only elsewhere, readable.
    bool present() const { return entry != nullptr || copy.handle != 0; }
  };
  enum class Verdict { kNext, kAgain };

  bool Begin(const StoreState& state);
  void ForgetNamespace();
  Found Judge(const StoreState& state, absl::Time now);
  // What one partition has of it; a lesser answer where it cannot be read.
  bool JudgeIn(const StoreState& state, PartitionIndex partition, const BlockKey& key,
               absl::Time now, Found* found, std::optional<BlockAnswer>* lesser);
  bool TokensDiffer(const BlockEntry& entry) const;
  bool TokensDiffer(const StoreState& state, const StoreState::Copy& copy) const;
  // Those of the block at the cursor; empty when the caller gave none.
  absl::Span<const uint32_t> TokensAtCursor(size_t block_tokens) const;
  void Advance(const Found& found);
  void SeePrompt(StoreState* state);
  // The last block in host memory before the first missed one.
  BlockHandle ParentOfMissed(const StoreState& state, const ClassSpace& space) const;
  bool StepMissed(StoreState* state);
  bool StepAsked(StoreState* state);
  // The stamp of all that it does.
  UseStamp Request(StoreState* state);
  bool AtEnd() const { return prompt_ == query_.prompts.size(); }
  PromptAnswer& answer_of_prompt() { return answer_.prompts[prompt_]; }

  // Of StepHold (lookup_hold.cc).
  void Restart();
  void BeginResume(StoreState* state, absl::Time now);
  Verdict Hold(StoreState* state, Found found, absl::Time now);
  bool MayLoad(const StoreState& state, const StoreState::Copy& copy) const;
  SpaceSeeker::Verdict StartLoad(StoreState* state, const StoreState::Copy& copy, absl::Time now,
                                 BlockEntry** loading);
  void Release(StoreState* state);
  void Grant(StoreState* state, BlockEntry* entry, absl::Time now);
  Lease* LeaseOf(StoreState* state, absl::Time now);
  bool StepTrim(StoreState* state, absl::Time now);
  void CloseLease(StoreState* state, absl::Time now);
  void ForgetLease();

  const absl::string_view tenant_;
  const Fingerprint& fingerprint_;
  const LookupQuery& query_;
  LookupAnswer answer_;

  const NamespaceRecord* record_ = nullptr;
  uint64_t epoch_ = 0;
  TenantIndex tenant_index_ = 0;
  PartitionIndex own_ = 0;
  PartitionIndex public_ = 0;

  size_t prompt_ = 0;
  size_t block_ = 0;
  bool consecutive_ = true;  // All blocks before it in the prompt are present,
  bool reachable_ = true;    // or being loaded,
  bool granted_ = true;      // and leased.
  bool wants_loads_ = false;
  bool holding_ = false;        // StepHold has begun,
  bool touching_ = false;       // StepTouch too,
  bool seeing_ = false;         // StepSeen too,
  bool asking_ = false;         // and its second part.
  BlockEntry* held_ = nullptr;  // The parent of a block to be loaded, while space is looked for.
  SpaceSeeker seeker_;
  std::optional<LeaseId> lease_;
  bool lease_refused_ = false;
  absl::flat_hash_set<BlockKey> resumed_;  // Granted again, of a lease that is resumed.
  std::optional<size_t> untrimmed_;        // Links of that lease that are still to be looked at.
  UseStamp request_ = 0;
  // Of the prompt at the cursor of StepSeen:
  uint32_t host_hits_ = 0;
  uint32_t first_depth_ = 0;                // Of its first block.
  std::vector<WorkingSet::Prompt> passes_;  // By working set.
  uint64_t collisions_ = 0;
  uint64_t disk_hits_ = 0;
  uint64_t device_hits_ = 0;
};

}  // namespace cairn::node
