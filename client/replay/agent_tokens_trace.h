// AgentTokensTrace: JSON lines of real token ids, each prompt told as what it adds to an earlier
// one.
//
// {"ref": index of an earlier request (from 0) or -1, "keep": how many of its first tokens this
// prompt starts with, "add": [the tokens that follow], "t": microseconds, "o": output tokens,
// "s": the source, which may be left out}.
// Keeps what every line added, up to kTokensKeptMax tokens. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "client/replay/line_trace.h"

namespace cairn::replay {

class AgentTokensTrace final : public LineTrace {
 public:
  static constexpr uint64_t kTokensKeptMax = uint64_t{1} << 28;

  explicit AgentTokensTrace(std::unique_ptr<LineReader> lines);

  uint32_t block_tokens() const override { return 0; }

 private:
  struct Entry {
    size_t ref = 0;   // Unused when keep == 0.
    size_t keep = 0;  // At most the length of `ref`'s prompt.
    std::vector<uint32_t> add;
  };

  // RESOURCE_EXHAUSTED past kTokensKeptMax.
  absl::StatusOr<TraceRequest> Parse(absl::string_view line, uint64_t line_number) override;
  absl::StatusOr<Entry> ParseEntry(const nlohmann::json& object) const;
  std::vector<uint32_t> PromptOf(const Entry& entry) const;

  std::vector<Entry> entries_;
  uint64_t tokens_kept_ = 0;
};

}  // namespace cairn::replay
