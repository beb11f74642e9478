// LookupOperation: one Lookup, in steps, so that a long one lets others have the lock.
//
// Plain lookups only read: Step runs under a shared lock. A lookup that leases, and the touching
// after a plain one, change state: StepLease and StepTouch run under the exclusive lock. If the
// namespace is retired between two steps the answer becomes that of an unknown one.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cache_node/store/store_state.h"
#include "cache_node/store/store_types.h"

namespace cairn::node {

class LookupOperation {
 public:
  // All that it borrows outlives it.
  LookupOperation(absl::string_view tenant, const Fingerprint& fingerprint,
                  const LookupQuery& query);

  // Each does a bounded part, and says whether all of it is done.
  bool Step(const StoreState& state, absl::Time now);
  bool StepLease(StoreState* state, absl::Time now);
  // After Step is done.
  bool StepTouch(StoreState* state);

  // After the last step.
  LookupAnswer Finish(StoreCounters* counters);

  // Instead of all these: the first block alone, uncounted. Null when it cannot be read.
  BlockEntry* FindOne(const StoreState& state, absl::Time now);
  const BlockAnswer& FirstAnswer() const { return answer_.prompts[0].blocks[0]; }

 private:
  bool Begin(const StoreState& state);
  void ForgetNamespace();
  BlockEntry* Judge(const StoreState& state, absl::Time now);
  bool TokensDiffer(const BlockEntry& entry) const;
  void Grant(StoreState* state, BlockEntry* entry, absl::Time now);
  Lease* LeaseOf(StoreState* state, absl::Time now);
  void Advance(bool present);
  void CloseLease(StoreState* state, absl::Time now);
  void ForgetLease();
  bool AtEnd() const { return prompt_ == query_.prompts.size(); }
  PromptAnswer& answer_of_prompt() { return answer_.prompts[prompt_]; }

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
  bool granted_ = true;      // and leased.
  std::optional<LeaseId> lease_;
  bool lease_refused_ = false;
  UseStamp use_ = 0;
  uint64_t collisions_ = 0;
};

}  // namespace cairn::node
