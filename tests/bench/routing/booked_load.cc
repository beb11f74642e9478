#include "tests/bench/routing/booked_load.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/check.h"

namespace cairn::bench {

BookedLoad::BookedLoad(const BlockTrace* trace, double prefill_tokens_per_second_prior)
    : trace_(trace), rate_(prefill_tokens_per_second_prior) {}

void BookedLoad::CountComing(uint32_t request, uint32_t held_blocks, bool more) {
  std::vector<BlockTrace::Block> path;
  trace_->PathOf(trace_->requests()[request], &path);
  for (size_t i = held_blocks; i < path.size(); ++i) {
    uint32_t& writers = coming_[path[i]];
    CAIRN_CHECK(more || writers > 0);
    writers += more ? 1 : -1;
    if (writers == 0) coming_.erase(path[i]);
  }
}

void BookedLoad::Book(uint32_t request, uint32_t held_blocks, uint64_t cached_tokens) {
  const BlockTrace::Request& asked = trace_->requests()[request];
  const uint64_t missing = asked.tokens - std::min<uint64_t>(cached_tokens, asked.tokens);
  const bool is_new =
      open_.try_emplace(request, Open{.prefill_tokens = missing, .held_blocks = held_blocks})
          .second;
  CAIRN_CHECK(is_new);
  prefill_tokens_ += missing;
  kv_tokens_ += uint64_t{asked.tokens} + asked.output_tokens;
  CountComing(request, held_blocks, true);
}

void BookedLoad::FirstToken(uint32_t request, uint64_t computed_tokens, double compute_s) {
  const auto open = open_.find(request);
  CAIRN_CHECK(open != open_.end());
  prefill_tokens_ -= std::exchange(open->second.prefill_tokens, 0);
  rate_.Add(static_cast<double>(computed_tokens), compute_s);
  CountComing(request, open->second.held_blocks, false);
}

void BookedLoad::Ended(uint32_t request) {
  CAIRN_CHECK(open_.erase(request) == 1);
  const BlockTrace::Request& asked = trace_->requests()[request];
  kv_tokens_ -= uint64_t{asked.tokens} + asked.output_tokens;
}

uint32_t BookedLoad::MatchWithComing(absl::Span<const BlockTrace::Block> path,
                                     const NodeCache& cache, uint32_t held) const {
  uint32_t match = held;
  while (match < path.size() && (cache.Holds(path[match]) || coming_.contains(path[match]))) {
    ++match;
  }
  return match;
}

void BookedLoad::Show(router::ReplicaView* replica) const {
  replica->queued_prefill_tokens = prefill_tokens_;
  replica->running_kv_tokens = kv_tokens_;
  replica->requests = open_.size();
  replica->prefill_tokens_per_second = rate_.per_second();
}

}  // namespace cairn::bench
