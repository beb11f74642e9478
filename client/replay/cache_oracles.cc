#include "client/replay/cache_oracles.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn::replay {

CacheOracles::CacheOracles(uint32_t block_tokens, uint64_t lru_blocks)
    : block_tokens_(block_tokens), lru_blocks_max_(lru_blocks), block_ids_(block_tokens) {}

absl::StatusOr<OracleHits> CacheOracles::Observe(const TracePrompt& prompt) {
  absl::StatusOr<std::vector<IdRun>> ids = block_ids_.RunsOf(prompt);
  if (!ids.ok()) return ids.status();
  // A run of ids makes one new run or one cut at most; then a root, and the LRU's own cut.
  if (runs_.size() + ids->size() + 2 > kRunsMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("more than ", kRunsMax, " distinct runs of blocks"));
  }
  const OracleHits hits = Walk(prompt.name_space(), *ids);
  TouchPath();
  prompt_tokens_ += prompt.token_count();
  full_blocks_ += prompt.token_count() / block_tokens_;
  hits_.ideal_blocks += hits.ideal_blocks;
  hits_.lru_blocks += hits.lru_blocks;
  return hits;
}

CacheOracles::RunIndex CacheOracles::NewRun(uint64_t first, uint64_t count) {
  Run run;
  run.first = first;
  run.count = static_cast<uint32_t>(count);
  CAIRN_CHECK(run.count == count && runs_.size() < kRunsMax);
  runs_.push_back(run);
  return static_cast<RunIndex>(runs_.size() - 1);
}

CacheOracles::RunIndex CacheOracles::RootOf(uint64_t name_space) {
  const auto [root, is_new] = roots_.try_emplace(name_space, kNone);
  if (is_new) root->second = NewRun(0, 0);
  return root->second;
}

CacheOracles::RunIndex CacheOracles::SplitAfter(RunIndex parent, RunIndex run, uint64_t count) {
  const RunIndex upper = NewRun(runs_[run].first, count);
  Run& lower = runs_[run];
  CAIRN_CHECK(count > 0 && count < lower.count);
  const auto cut = static_cast<uint32_t>(count);
  children_[{parent, lower.first}] = upper;
  children_[{upper, lower.first + cut}] = run;
  lower.first += cut;
  lower.count -= cut;
  if (lower.cached == 0) return upper;
  runs_[upper].cached = std::min(lower.cached, cut);
  lower.cached -= runs_[upper].cached;
  Link(upper, lower.newer, run);
  if (lower.cached == 0) Unlink(run);
  return upper;
}

OracleHits CacheOracles::Walk(uint64_t name_space, const std::vector<IdRun>& runs) {
  OracleHits hits;
  RunIndex parent = RootOf(name_space);
  path_.assign(1, parent);
  for (IdRun rest : runs) {
    while (rest.count > 0) {
      const auto [child, is_new] = children_.try_emplace({parent, rest.first}, kNone);
      RunIndex run = child->second;
      if (is_new) {
        run = child->second = NewRun(rest.first, rest.count);
        distinct_blocks_ += rest.count;
      } else if (rest.count < runs_[run].count) {
        run = SplitAfter(parent, run, rest.count);
      }
      const Run& found = runs_[run];
      if (!is_new) hits.ideal_blocks += found.count;
      hits.lru_blocks += found.cached;  // Nothing is cached below a block that is not.
      rest.first += found.count;
      rest.count -= found.count;
      path_.push_back(run);
      parent = run;
    }
  }
  return hits;
}

void CacheOracles::TouchPath() {
  uint64_t room = lru_blocks_max_;
  size_t end = 1;  // What of the path fits; its root holds no block.
  for (; end < path_.size() && room > 0; ++end) {
    if (runs_[path_[end]].count > room) path_[end] = SplitAfter(path_[end - 1], path_[end], room);
    room -= runs_[path_[end]].count;
  }
  for (size_t at = end - 1; at > 0; --at) {
    const RunIndex index = path_[at];
    if (runs_[index].cached > 0) Unlink(index);
    Run& run = runs_[index];
    cached_blocks_ += run.count - run.cached;
    run.cached = run.count;
    Link(index, kNone, newest_);
  }
  while (cached_blocks_ > lru_blocks_max_) DropOldest();
}

void CacheOracles::DropOldest() {
  CAIRN_CHECK(oldest_ != kNone);
  const RunIndex index = oldest_;
  Run& run = runs_[index];
  const uint64_t excess = cached_blocks_ - lru_blocks_max_;
  const auto dropped = static_cast<uint32_t>(std::min<uint64_t>(excess, run.cached));
  run.cached -= dropped;
  cached_blocks_ -= dropped;
  if (run.cached == 0) Unlink(index);
}

void CacheOracles::Link(RunIndex run, RunIndex newer, RunIndex older) {
  runs_[run].newer = newer;
  runs_[run].older = older;
  (newer == kNone ? newest_ : runs_[newer].older) = run;
  (older == kNone ? oldest_ : runs_[older].newer) = run;
}

void CacheOracles::Unlink(RunIndex run) {
  const Run unlinked = runs_[run];
  (unlinked.newer == kNone ? newest_ : runs_[unlinked.newer].older) = unlinked.older;
  (unlinked.older == kNone ? oldest_ : runs_[unlinked.older].newer) = unlinked.newer;
  runs_[run].newer = runs_[run].older = kNone;
}

}  // namespace cairn::replay
