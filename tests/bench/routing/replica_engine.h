// ReplicaEngine: one simulated replica that batches continuously, step by step, as inference
// engines do: it prefills in chunks, in the order in which requests came, beside one decoded token
// for each sequence that is past its prefill.
//
//   step seconds = (kStepSeconds + prefilled tokens / kPrefillTokensPerSecond
//                   + decoding sequences * kSequenceSeconds + their KV tokens * kKvTokenSeconds)
//                  / speed
//
// A model of Qwen3-32B in fp8 on two H100, by arithmetic and from published figures, not measured
// here: weights of 32 GB read at 2 x 3.35 TB/s and as long again for what is between the kernels;
// prefill at llm-d's peak rate (its prefix affinity filter's default); KV of 256 KiB a token at the
// same bandwidth; the KV that fits beside the weights in 90 % of the memory. Attention within a
// prompt is not counted, nor is reading cached KV.
//
// - A sequence enters when all its KV is free, with the prompt's blocks that the node's cache then
//   has; the last token is computed always. What it computed can be hit once its prefill is over.
// - A step that lacks room for one token of each decoding sequence sends the newest one back to the
//   head of the queue: its KV is dropped, and prompt and answer so far are prefilled once more.
//
// Times are the caller's. Borrows the trace. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "tests/bench/eviction/block_trace.h"
#include "tests/bench/routing/node_cache.h"

namespace cairn::bench {

struct EngineOptions {
  double speed = 1;
  // Of running sequences, prompt and answer.
  uint64_t kv_tokens_max = 400'000;
  // Blocks of the node's cache.
  uint32_t capacity = 0;
};

struct EngineEvent {
  uint32_t request = 0;
  bool ended = false;  // Else: its first token came.
  // Of the first token: of its first entry.
  uint32_t hit_blocks = 0;
  uint64_t computed_tokens = 0;
  double compute_s = 0;  // From the entry on.
};

class ReplicaEngine {
 public:
  static constexpr double kStepSeconds = 0.010;
  static constexpr double kPrefillTokensPerSecond = 15'928;
  static constexpr double kSequenceSeconds = 20e-6;
  static constexpr double kKvTokenSeconds = 39e-9;
  static constexpr uint64_t kChunkTokens = 2048;
  static constexpr size_t kSequencesMax = 256;

  ReplicaEngine(const BlockTrace* trace, const EngineOptions& options);

  // Queues it. REQUIRES: prompt and answer fit into kv_tokens_max.
  void Submit(uint32_t request, double now_s);
  // When the step that runs ends; nothing when there is nothing to do.
  std::optional<double> step_ends_s() const { return step_ends_s_; }
  // Ends that step and begins the next one. Events in the order of the sequences' entry.
  void FinishStep(std::vector<EngineEvent>* events);

  // Tokens that an answer has in the model: at least one.
  static uint64_t AnswerTokens(const BlockTrace::Request& request);

  const NodeCache& cache() const { return cache_; }
  uint64_t kv_tokens() const { return kv_tokens_; }
  uint64_t kv_tokens_peak() const { return kv_tokens_peak_; }
  uint64_t preemptions() const { return preemptions_; }
  uint64_t prefilled_tokens() const { return prefilled_tokens_; }
  double speed() const { return options_.speed; }

 private:
  struct Sequence {
    uint32_t request = 0;
    uint64_t answered = 0;      // Tokens of the answer that are out.
    uint64_t kv = 0;            // What it holds, and the token that the step adds.
    uint64_t prefill_left = 0;  // 0: it decodes.
    uint64_t prefilled_in_step = 0;
    uint64_t computed = 0;  // Since its entry.
    uint32_t hit_blocks = 0;
    double entered_s = 0;
  };

  void BeginStep(double now_s);
  uint64_t Decoding() const;
  void MakeRoomToDecode();
  void Enter(double now_s);
  void Count(uint64_t kv_more);
  // Whether it has ended.
  bool Advance(Sequence* sequence, double now_s, std::vector<EngineEvent>* events);

  const BlockTrace* const trace_;
  const EngineOptions options_;
  NodeCache cache_;
  std::deque<Sequence> waiting_;
  std::vector<Sequence> running_;  // In the order of entry.
  std::optional<double> step_ends_s_;
  uint64_t kv_tokens_ = 0;
  uint64_t kv_tokens_peak_ = 0;
  uint64_t preemptions_ = 0;
  uint64_t prefilled_tokens_ = 0;
  std::vector<BlockTrace::Block> path_;  // Of the request at hand.
};

}  // namespace cairn::bench
