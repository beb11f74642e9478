#include "tests/bench/eviction/best_cache.h"

#include <algorithm>
#include <queue>
#include <utility>
#include <vector>

#include "common/base/check.h"

namespace cairn::bench {
namespace {

constexpr uint32_t kNever = UINT32_MAX;

// The trace as stretches: blocks that are children of one another and of which no request asks for
// one without the others.
class Stretches {
 public:
  explicit Stretches(const BlockTrace& trace) {
    const uint32_t blocks = trace.block_count();
    std::vector<bool> begins(blocks + size_t{1}, false);
    for (BlockTrace::Block block = 0; block < blocks; ++block) {
      begins[block] = block == 0 || trace.ParentOf(block) != block - 1;
    }
    for (const BlockTrace::Request& request : trace.requests()) {
      for (const BlockTrace::Run& run : trace.RunsOf(request)) {
        begins[run.first] = true;
        begins[run.first + run.count] = true;
      }
    }
    of_.reserve(blocks);
    for (BlockTrace::Block block = 0; block < blocks; ++block) {
      if (begins[block]) lengths_.push_back(0);
      ++lengths_.back();
      of_.push_back(static_cast<uint32_t>(lengths_.size() - 1));
    }
  }

  size_t count() const { return lengths_.size(); }
  uint32_t LengthOf(uint32_t stretch) const { return lengths_[stretch]; }

  // Calls `visit(stretch)` for each of the request's, from the first.
  template <typename Visit>
  void ForEach(const BlockTrace& trace, const BlockTrace::Request& request, Visit visit) const {
    for (const BlockTrace::Run& run : trace.RunsOf(request)) {
      const uint32_t last = of_[run.first + run.count - 1];
      for (uint32_t stretch = of_[run.first]; stretch <= last; ++stretch) visit(stretch);
    }
  }

 private:
  std::vector<uint32_t> of_;  // By block.
  std::vector<uint32_t> lengths_;
};

// For each stretch of each request, in order: the next request that asks for it.
std::vector<uint32_t> NextUses(const BlockTrace& trace, const Stretches& stretches) {
  size_t uses = 0;
  for (const BlockTrace::Request& request : trace.requests()) {
    stretches.ForEach(trace, request, [&](uint32_t) { ++uses; });
  }
  std::vector<uint32_t> next(uses, kNever);
  std::vector<size_t> last(stretches.count(), uses);  // By stretch: where in `next`.
  size_t use = 0;
  uint32_t number = 0;
  for (const BlockTrace::Request& request : trace.requests()) {
    stretches.ForEach(trace, request, [&](uint32_t stretch) {
      if (last[stretch] != uses) next[last[stretch]] = number;
      last[stretch] = use++;
    });
    ++number;
  }
  return next;
}

class BeladyCache {
 public:
  BeladyCache(const BlockTrace& trace, uint64_t capacity)
      : trace_(trace),
        capacity_(capacity),
        stretches_(trace),
        next_uses_(NextUses(trace, stretches_)),
        cached_(stretches_.count(), 0),
        next_(stretches_.count(), kNever) {}

  uint32_t Serve(const BlockTrace::Request& request) {
    uint32_t hits = 0;
    bool whole = true;
    stretches_.ForEach(trace_, request, [&](uint32_t stretch) {
      const uint32_t length = stretches_.LengthOf(stretch);
      if (whole) hits += cached_[stretch];
      whole = whole && cached_[stretch] == length;
      next_[stretch] = next_uses_[use_++];
      const uint32_t kept = next_[stretch] == kNever ? 0 : length;
      size_ = size_ - cached_[stretch] + kept;
      cached_[stretch] = kept;
      if (kept > 0) order_.push({next_[stretch], stretch});
    });
    while (size_ > capacity_) DropLast();
    return hits;
  }

 private:
  // The next request that asks for it, and which: of one prompt the deeper has the higher number.
  using Place = std::pair<uint32_t, uint32_t>;

  // From the end of the stretch that is asked for last.
  void DropLast() {
    CAIRN_CHECK(!order_.empty());
    const auto [next, stretch] = order_.top();
    if (next_[stretch] != next || cached_[stretch] == 0) {
      order_.pop();
      return;
    }
    const uint64_t dropped = std::min<uint64_t>(size_ - capacity_, cached_[stretch]);
    cached_[stretch] -= static_cast<uint32_t>(dropped);
    size_ -= dropped;
  }

  const BlockTrace& trace_;
  const uint64_t capacity_;
  const Stretches stretches_;
  const std::vector<uint32_t> next_uses_;
  size_t use_ = 0;
  std::vector<uint32_t> cached_;  // By stretch: its first so many blocks.
  std::vector<uint32_t> next_;    // By stretch: the request that asks for it next.
  std::priority_queue<Place> order_;
  uint64_t size_ = 0;
};

}  // namespace

HitCounts UnlimitedHits(const BlockTrace& trace) {
  HitCounts counts;
  BlockTrace::Block seen = 0;
  std::vector<BlockTrace::Block> path;
  for (const BlockTrace::Request& request : trace.requests()) {
    trace.PathOf(request, &path);
    const auto fresh =
        std::find_if(path.begin(), path.end(), [&](BlockTrace::Block b) { return b >= seen; });
    const auto hits = static_cast<uint32_t>(fresh - path.begin());
    counts.Add(hits, trace.TokensOf(request, hits));
    if (!path.empty()) seen = std::max(seen, *std::max_element(path.begin(), path.end()) + 1);
  }
  return counts;
}

HitCounts BeladyHits(const BlockTrace& trace, uint64_t capacity) {
  HitCounts counts;
  BeladyCache cache(trace, capacity);
  for (const BlockTrace::Request& request : trace.requests()) {
    const uint32_t hits = cache.Serve(request);
    counts.Add(hits, trace.TokensOf(request, hits));
  }
  return counts;
}

}  // namespace cairn::bench
