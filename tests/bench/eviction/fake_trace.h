// FakeTrace: a trace of prompts that a test writes down as hash ids.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "client/replay/trace.h"

namespace cairn::bench {

class FakeTrace final : public replay::TraceReader {
 public:
  static constexpr uint32_t kBlockTokens = 10;

  struct Prompt {
    std::vector<uint64_t> ids;
    // 0: so many that all blocks are full.
    uint64_t tokens = 0;
    double arrival_s = 0;
    uint64_t name_space = 0;
    std::string source = {};
    uint64_t output_tokens = 0;
  };

  explicit FakeTrace(std::vector<Prompt> prompts) : prompts_(std::move(prompts)) {}
  uint32_t block_tokens() const override { return kBlockTokens; }

 private:
  absl::StatusOr<std::optional<replay::TraceRequest>> Read() override {
    if (next_ == prompts_.size()) return std::nullopt;
    const Prompt& prompt = prompts_[next_++];
    std::vector<replay::IdRun> runs;
    for (const uint64_t id : prompt.ids) replay::AppendRun({id, 1}, &runs);
    const uint64_t tokens = prompt.tokens != 0 ? prompt.tokens : prompt.ids.size() * kBlockTokens;
    replay::TraceRequest request;
    request.arrival_s = prompt.arrival_s;
    request.prompt =
        replay::TracePrompt::FromIds(prompt.name_space, kBlockTokens, std::move(runs), tokens);
    request.source = prompt.source;
    request.output_tokens = prompt.output_tokens;
    return request;
  }

  const std::vector<Prompt> prompts_;
  size_t next_ = 0;
};

}  // namespace cairn::bench
