#include "tests/bench/routing/replica_engine.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace cairn::bench {

ReplicaEngine::ReplicaEngine(const BlockTrace* trace, const EngineOptions& options)
    : trace_(trace), options_(options), cache_(trace->block_count(), options.capacity) {
  CAIRN_CHECK(options.speed > 0);
}

uint64_t ReplicaEngine::AnswerTokens(const BlockTrace::Request& request) {
  return std::max<uint64_t>(1, request.output_tokens);
}

void ReplicaEngine::Submit(uint32_t request, double now_s) {
  const BlockTrace::Request& asked = trace_->requests()[request];
  CAIRN_CHECK(asked.tokens + AnswerTokens(asked) <= options_.kv_tokens_max);
  Sequence sequence;
  sequence.request = request;
  waiting_.push_back(sequence);
  if (!step_ends_s_.has_value()) BeginStep(now_s);
}

uint64_t ReplicaEngine::Decoding() const {
  uint64_t decoding = 0;
  for (const Sequence& sequence : running_) decoding += sequence.prefill_left == 0 ? 1 : 0;
  return decoding;
}

void ReplicaEngine::Count(uint64_t kv_more) {
  kv_tokens_ += kv_more;
  kv_tokens_peak_ = std::max(kv_tokens_peak_, kv_tokens_);
  CAIRN_CHECK(kv_tokens_ <= options_.kv_tokens_max);
}

// Who has to leave for it does not fit again in the same step: it would need a token more.
void ReplicaEngine::MakeRoomToDecode() {
  while (kv_tokens_ + Decoding() > options_.kv_tokens_max) {
    CAIRN_CHECK(running_.size() > 1);  // One alone fits: Submit's condition.
    Sequence newest = running_.back();
    running_.pop_back();
    kv_tokens_ -= newest.kv;
    newest.kv = 0;
    waiting_.push_front(newest);
    ++preemptions_;
  }
  for (Sequence& sequence : running_) {
    if (sequence.prefill_left > 0) continue;
    ++sequence.kv;
    Count(1);
  }
}

void ReplicaEngine::Enter(double now_s) {
  Sequence& sequence = running_.emplace_back(waiting_.front());
  waiting_.pop_front();
  const BlockTrace::Request& request = trace_->requests()[sequence.request];
  trace_->PathOf(request, &path_);
  const uint32_t hits = cache_.Match(path_);
  const uint64_t tokens = request.tokens + sequence.answered;
  sequence.prefill_left = std::max<uint64_t>(1, tokens - trace_->TokensOf(request, hits));
  sequence.kv = tokens + 1;
  Count(sequence.kv);
  sequence.computed = 0;
  sequence.entered_s = now_s;
  if (sequence.answered == 0) sequence.hit_blocks = hits;
}

void ReplicaEngine::BeginStep(double now_s) {
  step_ends_s_.reset();
  MakeRoomToDecode();
  uint64_t decoding = 0, decoding_kv = 0;
  for (const Sequence& sequence : running_) {
    if (sequence.prefill_left > 0) continue;
    ++decoding;
    decoding_kv += sequence.kv;
  }
  uint64_t left = kChunkTokens;
  for (size_t i = 0; left > 0; ++i) {
    if (i == running_.size()) {
      if (waiting_.empty() || running_.size() == kSequencesMax) break;
      const Sequence& next = waiting_.front();
      const uint64_t needed = trace_->requests()[next.request].tokens + next.answered + 1;
      if (kv_tokens_ + needed > options_.kv_tokens_max) break;
      Enter(now_s);
    }
    Sequence& sequence = running_[i];
    sequence.prefilled_in_step = std::min(left, sequence.prefill_left);
    left -= sequence.prefilled_in_step;
  }
  if (running_.empty()) return;
  const double seconds = kStepSeconds +
                         static_cast<double>(kChunkTokens - left) / kPrefillTokensPerSecond +
                         static_cast<double>(decoding) * kSequenceSeconds +
                         static_cast<double>(decoding_kv) * kKvTokenSeconds;
  step_ends_s_ = now_s + seconds / options_.speed;
}

bool ReplicaEngine::Advance(Sequence* sequence, double now_s, std::vector<EngineEvent>* events) {
  if (sequence->prefill_left > 0) {
    const uint64_t prefilled = std::exchange(sequence->prefilled_in_step, 0);
    sequence->prefill_left -= prefilled;
    sequence->computed += prefilled;
    prefilled_tokens_ += prefilled;
    if (sequence->prefill_left > 0) return false;
    trace_->PathOf(trace_->requests()[sequence->request], &path_);
    cache_.Use(path_);
  }
  if (++sequence->answered == 1) {
    events->push_back({.request = sequence->request,
                       .hit_blocks = sequence->hit_blocks,
                       .computed_tokens = sequence->computed,
                       .compute_s = now_s - sequence->entered_s});
  }
  if (sequence->answered < AnswerTokens(trace_->requests()[sequence->request])) return false;
  kv_tokens_ -= sequence->kv;
  events->push_back({.request = sequence->request, .ended = true});
  return true;
}

void ReplicaEngine::FinishStep(std::vector<EngineEvent>* events) {
  CAIRN_CHECK(step_ends_s_.has_value());
  const double now_s = *step_ends_s_;
  size_t kept = 0;
  for (size_t i = 0; i < running_.size(); ++i) {
    const bool ended = Advance(&running_[i], now_s, events);
    if (!ended) running_[kept++] = running_[i];
  }
  running_.resize(kept);
  BeginStep(now_s);
}

}  // namespace cairn::bench
