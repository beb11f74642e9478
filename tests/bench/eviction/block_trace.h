// BlockTrace: a whole trace as numbers of blocks, for simulations that go over it again and again.
//
// A block is its id under its parent: equal ids after different prefixes are different blocks.
// Numbers are dense, in the order in which blocks are first asked for, so a block was asked for
// before exactly when its number is below the count of blocks seen. A prompt is runs of consecutive
// numbers, each block the parent of the next. A value; const calls from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/replay/trace.h"

namespace cairn::bench {

struct BlockTraceOptions {
  // Of traces of real tokens; others say it themselves.
  uint32_t block_tokens = 16;
  // Count a last block that is not full, where the trace gives its id.
  bool partial = false;
  // Only requests of this source (replay::TraceRequest::source). Empty: all.
  std::string source = {};
};

class BlockTrace {
 public:
  using Block = uint32_t;
  static constexpr Block kNone = UINT32_MAX;

  struct Run {
    Block first = 0;
    uint32_t count = 0;
  };
  struct Request {
    uint32_t first_run = 0;
    uint32_t runs = 0;
    uint32_t blocks = 0;
    uint32_t tokens = 0;
    uint32_t output_tokens = 0;
    double arrival_s = 0;
  };

  // Reads to the end; requests in the order of their arrival, to the millisecond. The reader's
  // error, or RESOURCE_EXHAUSTED where numbers do not suffice.
  static absl::StatusOr<BlockTrace> Read(replay::TraceReader* reader,
                                         const BlockTraceOptions& options);

  uint32_t block_tokens() const { return block_tokens_; }
  absl::Span<const Request> requests() const { return requests_; }
  absl::Span<const Run> RunsOf(const Request& request) const {
    return absl::MakeConstSpan(runs_).subspan(request.first_run, request.runs);
  }
  // The blocks of its prompt, into `path`.
  void PathOf(const Request& request, std::vector<Block>* path) const;
  // Tokens of its first `blocks` blocks.
  uint64_t TokensOf(const Request& request, uint32_t blocks) const;

  uint32_t block_count() const { return static_cast<uint32_t>(parents_.size()); }
  uint64_t block_refs() const { return block_refs_; }
  uint64_t tokens() const { return tokens_; }
  Block ParentOf(Block block) const { return parents_[block]; }
  // As evenly spread as the keys of a store.
  static uint64_t KeyOf(Block block);

 private:
  friend class BlockTraceBuilder;

  uint32_t block_tokens_ = 0;
  uint64_t block_refs_ = 0;
  uint64_t tokens_ = 0;
  std::vector<Request> requests_;
  std::vector<Run> runs_;
  std::vector<Block> parents_;
};

}  // namespace cairn::bench
