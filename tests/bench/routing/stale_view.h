// StaleView: what one router knows of one node's cache: what the feed said, so many seconds late,
// and what this router itself sent there since.
//
// The feed tells of evictions as late as of insertions; a batch of it can be lost, and then is
// never made good. What was sent counts at once, until its own record comes. Borrows the trace. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <deque>

#include "absl/container/flat_hash_map.h"
#include "tests/bench/eviction/block_trace.h"
#include "tests/bench/routing/node_cache.h"

namespace cairn::bench {

class StaleView {
 public:
  // `late_s` 0: as the cache is, at once.
  StaleView(const BlockTrace* trace, uint32_t capacity, double late_s);

  // Records that are due by now are taken in.
  void Advance(double now_s);
  uint32_t Match(absl::Span<const BlockTrace::Block> path) const;
  // The node served a request. `own`: this router sent it. `lost`: its batch never comes.
  void Served(double now_s, uint32_t request, absl::Span<const BlockTrace::Block> path, bool own,
              bool lost);

 private:
  struct Record {
    double due_s = 0;
    uint32_t request = 0;
    bool own = false;
    bool lost = false;
  };

  const BlockTrace* const trace_;
  const double late_s_;
  NodeCache fed_;
  std::deque<Record> records_;
  absl::flat_hash_map<BlockTrace::Block, uint32_t> sent_;  // How many records of it are to come.
};

}  // namespace cairn::bench
