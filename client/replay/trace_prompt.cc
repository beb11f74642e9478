#include "client/replay/trace_prompt.h"

#include <algorithm>
#include <utility>

#include "client/replay/block_token.h"
#include "common/base/check.h"

namespace cairn::replay {

TracePrompt TracePrompt::FromTokens(std::vector<uint32_t> tokens) {
  TracePrompt prompt;
  prompt.token_count_ = tokens.size();
  prompt.tokens_ = std::move(tokens);
  return prompt;
}

TracePrompt TracePrompt::FromIds(uint64_t name_space, uint32_t block_tokens,
                                 std::vector<IdRun> runs, uint64_t token_count) {
  CAIRN_CHECK(block_tokens > 0);
  uint64_t ids = 0;
  for (const IdRun& run : runs) ids += run.count;
  CAIRN_CHECK(ids == (token_count + block_tokens - 1) / block_tokens);
  TracePrompt prompt;
  prompt.token_count_ = token_count;
  prompt.name_space_ = name_space;
  prompt.block_tokens_ = block_tokens;
  prompt.runs_ = std::move(runs);
  return prompt;
}

std::vector<uint32_t> TracePrompt::Tokens() const {
  if (block_tokens_ == 0) return tokens_;
  std::vector<uint32_t> tokens;
  tokens.reserve(token_count_);
  for (const IdRun& run : runs_) {
    for (uint64_t id = run.first; id - run.first < run.count; ++id) {
      const uint64_t seed = BlockSeed(name_space_, id);
      const uint64_t count = std::min<uint64_t>(block_tokens_, token_count_ - tokens.size());
      for (uint64_t i = 0; i < count; ++i) tokens.push_back(BlockToken(seed, i));
    }
  }
  CAIRN_CHECK(tokens.size() == token_count_);
  return tokens;
}

}  // namespace cairn::replay
