#include "client/replay/served/served_worker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/replay/model/greedy.h"
#include "common/base/check.h"

namespace cairn::replay {
namespace {

// Losses within one step that are made good. More: the nodes lose faster than it computes.
constexpr int kRecoveriesMax = 16;
constexpr uint64_t kRecomputeChunkTokens = 128;

}  // namespace

ServedWorker::ServedWorker(const Transformer* model, std::vector<ServedAttention*> ranks)
    : model_(model), ranks_(std::move(ranks)) {
  CAIRN_CHECK(!ranks_.empty());
  uint32_t query_heads = 0;
  for (const ServedAttention* rank : ranks_) query_heads += rank->heads().query_heads;
  CAIRN_CHECK(query_heads == model_->heads().query_heads);
  if (ranks_.size() == 1) return;
  sliced_ = std::make_unique<SlicedAttention>(
      model_->heads(), std::vector<LayerAttention*>(ranks_.begin(), ranks_.end()));
}

void ServedWorker::Begin(uint64_t sequence, std::vector<uint32_t> tokens) {
  std::unique_ptr<std::vector<uint32_t>>& known = tokens_[sequence];
  known = std::make_unique<std::vector<uint32_t>>(std::move(tokens));
  for (ServedAttention* rank : ranks_) rank->SetTokens(sequence, known.get());
}

absl::StatusOr<std::vector<float>> ServedWorker::Prefill(uint64_t sequence, uint64_t chunk_tokens) {
  const std::vector<uint32_t>& tokens = *tokens_.at(sequence);
  if (tokens.empty()) return absl::InvalidArgumentError("prefill of no tokens");
  uint64_t position = tokens.size() - 1;
  for (ServedAttention* rank : ranks_) {
    const absl::StatusOr<uint64_t> held =
        rank->HeldFrom(sequence, rank->session()->CoveredTokens(sequence));
    if (!held.ok()) return held.status();
    position = std::min(position, *held);
  }
  std::vector<float> last;
  while (position < tokens.size()) {
    const uint64_t count = std::min<uint64_t>(chunk_tokens, tokens.size() - position);
    const StepTokens chunk{sequence, position,
                           absl::MakeConstSpan(tokens).subspan(position, count)};
    absl::StatusOr<std::vector<float>> logits = Run({&chunk, 1});
    if (!logits.ok()) return logits.status();
    last.assign(logits->end() - model_->shape().vocabulary, logits->end());
    position += count;
  }
  return last;
}

absl::StatusOr<std::vector<float>> ServedWorker::RunOnce(absl::Span<const StepTokens> batch) {
  return model_->Step(
      batch, sliced_ != nullptr ? static_cast<LayerAttention*>(sliced_.get()) : ranks_.front());
}

absl::StatusOr<std::vector<float>> ServedWorker::Run(absl::Span<const StepTokens> batch) {
  ++counters_.steps;
  absl::StatusOr<std::vector<float>> logits = RunOnce(batch);
  for (int i = 0; i < kRecoveriesMax && absl::IsAborted(logits.status()); ++i) {
    std::vector<LostTokens> lost;
    if (!TakeLost(&lost)) return logits;
    ++counters_.repeated_steps;
    absl::Status status = Rewind(batch);
    if (status.ok()) status = Recompute(std::move(lost));
    if (!status.ok()) return status;
    logits = RunOnce(batch);
  }
  return logits;
}

bool ServedWorker::TakeLost(std::vector<LostTokens>* lost) {
  bool any = false;
  for (ServedAttention* rank : ranks_) {
    for (const LostTokens& one : rank->session()->TakeLost()) {
      any = true;
      if (!one.again) rank->session()->TakeOver(one);
      const bool known = std::any_of(lost->begin(), lost->end(), [&](const LostTokens& other) {
        return other.sequence == one.sequence && other.tokens == one.tokens;
      });
      if (!known && !one.tokens.empty()) lost->push_back(one);
    }
  }
  // What lies behind is computed from what lies before.
  std::stable_sort(lost->begin(), lost->end(), [](const LostTokens& a, const LostTokens& b) {
    return a.tokens.begin < b.tokens.begin;
  });
  return any;
}

absl::Status ServedWorker::Rewind(absl::Span<const StepTokens> batch) {
  for (const StepTokens& one : batch) {
    for (ServedAttention* rank : ranks_) {
      absl::Status status = rank->Rewind(one.sequence, one.position);
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

absl::Status ServedWorker::Recompute(std::vector<LostTokens> lost) {
  for (int losses = 0; !lost.empty();) {
    const LostTokens first = lost.front();
    ++counters_.recomputed_ranges;
    const std::vector<uint32_t>& tokens = *tokens_.at(first.sequence);
    CAIRN_CHECK(first.tokens.end <= tokens.size());
    absl::Status status;
    uint64_t position = first.tokens.begin;
    while (status.ok() && position < first.tokens.end) {
      const uint64_t count = std::min(kRecomputeChunkTokens, first.tokens.end - position);
      const StepTokens chunk{first.sequence, position,
                             absl::MakeConstSpan(tokens).subspan(position, count)};
      status = RunOnce({&chunk, 1}).status();
      if (absl::IsAborted(status)) status.Update(Rewind({&chunk, 1}));
      if (!status.ok()) break;
      counters_.recomputed_tokens += count;
      position += count;
    }
    if (status.ok()) {
      lost.erase(lost.begin());
      continue;
    }
    // What is left of this range, behind what was lost meanwhile.
    lost.front().tokens.begin = position;
    if (!absl::IsAborted(status) || !TakeLost(&lost) || ++losses > kRecoveriesMax) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<float>> ServedWorker::Step(absl::Span<const StepTokens> batch) {
  for (const StepTokens& one : batch) {
    const size_t end = tokens(one.sequence).size();
    if (one.position == end) continue;
    return absl::InvalidArgumentError(absl::StrCat("sequence ", one.sequence, ": tokens at ",
                                                   one.position, ", but it ends at ", end));
  }
  for (const StepTokens& one : batch) {
    std::vector<uint32_t>& tokens = *tokens_.at(one.sequence);
    tokens.insert(tokens.end(), one.tokens.begin(), one.tokens.end());
  }
  absl::StatusOr<std::vector<float>> logits = Run(batch);
  if (logits.ok()) return logits;
  for (const StepTokens& one : batch) tokens_.at(one.sequence)->resize(one.position);
  return logits;
}

absl::StatusOr<std::vector<uint32_t>> ServedWorker::Decode(
    uint64_t sequence, std::vector<float> logits, uint64_t steps,
    const std::function<void(uint32_t)>& on_token) {
  std::vector<uint32_t> decoded;
  for (uint64_t i = 0; i < steps; ++i) {
    const uint32_t token = GreedyToken(logits);
    decoded.push_back(token);
    const StepTokens step{sequence, tokens(sequence).size(), {&token, 1}};
    absl::StatusOr<std::vector<float>> next = Step({&step, 1});
    if (!next.ok()) return next.status();
    logits = *std::move(next);
    if (on_token != nullptr) on_token(token);
  }
  return decoded;
}

absl::StatusOr<ServedWorker::Verified> ServedWorker::Verify(uint64_t sequence,
                                                            const std::vector<float>& logits,
                                                            absl::Span<const uint32_t> draft) {
  CAIRN_CHECK(!draft.empty());
  const uint64_t position = tokens(sequence).size();
  const StepTokens step{sequence, position, draft};
  absl::StatusOr<std::vector<float>> all = Step({&step, 1});
  if (!all.ok()) return all.status();
  const uint64_t vocabulary = model_->shape().vocabulary;
  Verified verified;
  verified.logits = logits;
  while (verified.accepted < draft.size() &&
         GreedyToken(verified.logits) == draft[verified.accepted]) {
    const auto row = all->begin() + static_cast<ptrdiff_t>(verified.accepted * vocabulary);
    verified.logits.assign(row, row + static_cast<ptrdiff_t>(vocabulary));
    ++verified.accepted;
  }
  if (verified.accepted == draft.size()) return verified;
  const absl::Status status = Truncate(sequence, position + verified.accepted);
  if (!status.ok()) return status;
  return verified;
}

absl::Status ServedWorker::Truncate(uint64_t sequence, uint64_t length) {
  for (ServedAttention* rank : ranks_) {
    absl::Status status = rank->session()->Truncate(sequence, length);
    if (status.ok()) status = rank->Rewind(sequence, length);
    if (!status.ok()) return status;
  }
  std::vector<uint32_t>& tokens = *tokens_.at(sequence);
  tokens.resize(std::min<size_t>(tokens.size(), length));
  return absl::OkStatus();
}

absl::Status ServedWorker::Fork(uint64_t sequence, absl::Span<const uint64_t> forks,
                                uint64_t reserve_tokens) {
  for (ServedAttention* rank : ranks_) {
    absl::Status status = rank->session()->Fork(sequence, forks, reserve_tokens);
    for (size_t i = 0; i < forks.size() && status.ok(); ++i)
      status = rank->Fork(sequence, forks[i]);
    if (!status.ok()) return status;
  }
  for (const uint64_t fork : forks) Begin(fork, tokens(sequence));
  return absl::OkStatus();
}

void ServedWorker::Close(uint64_t sequence) {
  for (ServedAttention* rank : ranks_) {
    rank->Close(sequence);
    rank->session()->Close(sequence);
  }
  tokens_.erase(sequence);
}

}  // namespace cairn::replay
