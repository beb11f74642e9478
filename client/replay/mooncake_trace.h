// MooncakeTrace: JSON lines {"timestamp": ms, "input_length", "output_length", "hash_ids": [...]}.
//
// As published with Mooncake (FAST'25). One id a block, the last one for a block that may be
// partial. Not thread-safe.
#pragma once

#include <memory>

#include "client/replay/line_trace.h"

namespace cairn::replay {

inline constexpr uint32_t kMooncakeBlockTokens = 512;

class MooncakeTrace final : public LineTrace {
 public:
  // REQUIRES: block_tokens > 0.
  MooncakeTrace(std::unique_ptr<LineReader> lines, uint32_t block_tokens);

  uint32_t block_tokens() const override { return block_tokens_; }

 private:
  absl::StatusOr<TraceRequest> Parse(absl::string_view line, uint64_t line_number) override;

  const uint32_t block_tokens_;
};

}  // namespace cairn::replay
