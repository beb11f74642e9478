// SequenceSealer: publishes full blocks of sequences, as copies, through the store's own writes.
//
// A mover: one thread calls Seal, which copies and hashes, between SequenceTable::TakeSeals and
// FinishSeal; it knows neither threads nor the table. What it writes is as if the sequence's caller
// had: under its tenant, its writer, and a key that the store's rules compute again. Borrows all,
// which must outlive it.
#pragma once

#include "absl/status/statusor.h"
#include "cache_node/decode/sequence/sequence_seal.h"
#include "cache_node/store/block_store.h"
#include "common/base/clock.h"
#include "common/identity/block_hasher.h"

namespace cairn::node {

class SequenceSealer {
 public:
  SequenceSealer(BlockStore* store, const BlockHasher* hasher, const Clock* clock)
      : store_(store), hasher_(hasher), clock_(clock) {}

  // Whatever the store says is an outcome, never an error. Nothing is left reserved.
  SealOutcome Seal(const SealTask& task);

 private:
  // Of segments that are copied before others may run.
  static constexpr uint64_t kPieceBytes = uint64_t{1} << 20;

  absl::StatusOr<ReserveAnswer> Reserve(const SealTask& task);
  absl::Status WritePart(const SealTask& task, const TokenId& token, const PayloadMap::Part& part);

  BlockStore* const store_;
  const BlockHasher* const hasher_;
  const Clock* const clock_;
};

}  // namespace cairn::node
