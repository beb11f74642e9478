// NormalisedTrace: lines "seconds input output namespace ranges".
//
// `ranges` are ids and inclusive ranges of ids between commas ("1-1112,1200"), for all full blocks
// or for those and the partial last one; nothing for a prompt without them. A partial block without
// an id is like no other. Ranges stay ranges. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>

#include "client/replay/line_trace.h"

namespace cairn::replay {

inline constexpr uint32_t kNormalisedBlockTokens = 64;

class NormalisedTrace final : public LineTrace {
 public:
  // REQUIRES: block_tokens > 0.
  NormalisedTrace(std::unique_ptr<LineReader> lines, uint32_t block_tokens);

  uint32_t block_tokens() const override { return block_tokens_; }

 private:
  absl::StatusOr<TraceRequest> Parse(absl::string_view line, uint64_t line_number) override;

  const uint32_t block_tokens_;
};

}  // namespace cairn::replay
