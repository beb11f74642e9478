// ServedWorker: a model that decodes over nodes, and computes again what they lose.
//
// Keeps each sequence's tokens. A step that ABORTED with lost tokens is repeated after those were
// run again, in order of position: through the session where a node takes them, else they are held
// in this process from then on. Ranks of a tensor-parallel worker go together: what one of them
// loses is run through all. Borrows model and attentions. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/cpp/decode/decode_session.h"
#include "client/replay/model/sliced_attention.h"
#include "client/replay/model/transformer.h"
#include "client/replay/served/served_attention.h"

namespace cairn::replay {

struct ServedWorkerCounters {
  uint64_t steps = 0;
  uint64_t repeated_steps = 0;
  uint64_t recomputed_ranges = 0;
  uint64_t recomputed_tokens = 0;
};

class ServedWorker {
 public:
  // One attention for each rank, in order of slices. REQUIRES: at least one; together the model's
  // heads.
  ServedWorker(const Transformer* model, std::vector<ServedAttention*> ranks);

  // `tokens` of the prompt, of which the sessions have opened `sequence` over the first ones.
  void Begin(uint64_t sequence, std::vector<uint32_t> tokens);
  // Runs what of the prompt no node holds, at least its last token; logits after that.
  absl::StatusOr<std::vector<float>> Prefill(uint64_t sequence, uint64_t chunk_tokens);

  // New tokens of different sequences, each at its sequence's end; logits as Transformer::Step.
  absl::StatusOr<std::vector<float>> Step(absl::Span<const StepTokens> batch);
  // `steps` greedy tokens after `logits`; `on_token` may be null.
  absl::StatusOr<std::vector<uint32_t>> Decode(uint64_t sequence, std::vector<float> logits,
                                               uint64_t steps,
                                               const std::function<void(uint32_t)>& on_token);
  // Runs a draft in one step and cuts off what greedy decoding would not have chosen.
  struct Verified {
    uint64_t accepted = 0;
    std::vector<float> logits;  // After the accepted ones.
  };
  absl::StatusOr<Verified> Verify(uint64_t sequence, const std::vector<float>& logits,
                                  absl::Span<const uint32_t> draft);

  absl::Status Truncate(uint64_t sequence, uint64_t length);
  absl::Status Fork(uint64_t sequence, absl::Span<const uint64_t> forks, uint64_t reserve_tokens);
  void Close(uint64_t sequence);

  const std::vector<uint32_t>& tokens(uint64_t sequence) const { return *tokens_.at(sequence); }
  const ServedWorkerCounters& counters() const { return counters_; }

 private:
  // One run of tokens that the sequences have, without recovery.
  absl::StatusOr<std::vector<float>> RunOnce(absl::Span<const StepTokens> batch);
  // The same with recovery.
  absl::StatusOr<std::vector<float>> Run(absl::Span<const StepTokens> batch);
  // Whether ranks lost anything; adds what is to be run again, by position, and takes over what is
  // theirs now.
  bool TakeLost(std::vector<LostTokens>* lost);
  absl::Status Rewind(absl::Span<const StepTokens> batch);
  absl::Status Recompute(std::vector<LostTokens> lost);

  const Transformer* const model_;
  const std::vector<ServedAttention*> ranks_;
  std::unique_ptr<SlicedAttention> sliced_;  // Of several ranks.
  // By pointer: attentions borrow them.
  std::map<uint64_t, std::unique_ptr<std::vector<uint32_t>>> tokens_;
  ServedWorkerCounters counters_;
};

}  // namespace cairn::replay
