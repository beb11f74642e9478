#include "tests/bench/routing/stale_view.h"

#include "common/base/check.h"

namespace cairn::bench {

StaleView::StaleView(const BlockTrace* trace, uint32_t capacity, double late_s)
    : trace_(trace), late_s_(late_s), fed_(trace->block_count(), capacity) {}

void StaleView::Advance(double now_s) {
  std::vector<BlockTrace::Block> path;
  while (!records_.empty() && records_.front().due_s <= now_s) {
    const Record record = records_.front();
    records_.pop_front();
    trace_->PathOf(trace_->requests()[record.request], &path);
    if (record.own) {
      for (const BlockTrace::Block block : path) {
        const auto sent = sent_.find(block);
        CAIRN_CHECK(sent != sent_.end());
        if (--sent->second == 0) sent_.erase(sent);
      }
    }
    if (!record.lost) fed_.Use(path);
  }
}

uint32_t StaleView::Match(absl::Span<const BlockTrace::Block> path) const {
  if (sent_.empty()) return fed_.Match(path);
  uint32_t hits = 0;
  while (hits < path.size() && (fed_.Holds(path[hits]) || sent_.contains(path[hits]))) ++hits;
  return hits;
}

void StaleView::Served(double now_s, uint32_t request, absl::Span<const BlockTrace::Block> path,
                       bool own, bool lost) {
  if (late_s_ == 0 && !lost) {
    fed_.Use(path);
    return;
  }
  if (own) {
    for (const BlockTrace::Block block : path) ++sent_[block];
  }
  records_.push_back({.due_s = now_s + late_s_, .request = request, .own = own, .lost = lost});
}

}  // namespace cairn::bench
