// ColdPrefill: a worker that computes a whole prompt by itself, and can put its blocks.
//
// What another worker's prefix comes from, and what its tokens are held against. KV lies here as
// the layout has it, a slice at a time. Borrows the model. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/cpp/cache_node_client.h"
#include "client/replay/model/greedy.h"
#include "client/replay/model/local_attention.h"
#include "client/replay/model/sliced_attention.h"
#include "client/replay/model/transformer.h"

namespace cairn::replay {

// The namespace of a model whose weights come from this seed: one for each model, seed and layout.
absl::StatusOr<NamespaceHandle> ModelNamespace(const ModelShape& shape, uint64_t seed,
                                               const Layout& layout);

class ColdPrefill {
 public:
  // As Prefill; INVALID_ARGUMENT for a layout that is not the model's.
  static absl::StatusOr<std::unique_ptr<ColdPrefill>> Run(const Transformer* model,
                                                          const NamespaceHandle& name_space,
                                                          absl::Span<const uint32_t> tokens);

  // After the prompt.
  const std::vector<float>& logits() const { return logits_; }
  uint64_t full_blocks() const;
  // One segment of a full block. REQUIRES: both are there.
  absl::Span<const uint8_t> Segment(size_t block, const SegmentId& id) const;
  // Puts all full blocks of the prompt's tokens that the node does not have.
  absl::StatusOr<PutResult> Put(CacheNodeClient* node, const Prompt& prompt) const;
  // Greedy tokens behind the prompt, all computed here. To be called once.
  absl::StatusOr<Decoded> Decode(uint64_t steps);

 private:
  ColdPrefill(const Transformer* model, const NamespaceHandle& name_space, uint64_t tokens)
      : model_(model), name_space_(name_space), tokens_(tokens) {}

  const Transformer* const model_;
  const NamespaceHandle name_space_;
  const uint64_t tokens_;
  std::vector<std::unique_ptr<LocalAttention>> slices_;
  std::unique_ptr<SlicedAttention> attention_;
  std::vector<float> logits_;
};

}  // namespace cairn::replay
