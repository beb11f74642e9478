// TracePrompt: the prompt of one request of a trace, as compact as the trace gives it.
//
// A value. Either real token ids, or runs of hash ids from which the tokens are made on demand
// (block_token.h). Equal ids of one namespace are equal tokens; prompts made of ids in different
// namespaces share nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "client/replay/id_run.h"

namespace cairn::replay {

class TracePrompt {
 public:
  // No tokens.
  TracePrompt() = default;

  static TracePrompt FromTokens(std::vector<uint32_t> tokens);

  // REQUIRES: `runs` hold ceil(token_count / block_tokens) ids, block_tokens > 0.
  static TracePrompt FromIds(uint64_t name_space, uint32_t block_tokens, std::vector<IdRun> runs,
                             uint64_t token_count);

  uint64_t token_count() const { return token_count_; }
  uint64_t name_space() const { return name_space_; }

  // Tokens that each id covers (the last one perhaps fewer); 0 when made of tokens.
  uint32_t block_tokens() const { return block_tokens_; }
  absl::Span<const IdRun> runs() const { return runs_; }

  // All token_count() of them.
  std::vector<uint32_t> Tokens() const;

 private:
  uint64_t token_count_ = 0;
  uint64_t name_space_ = 0;
  uint32_t block_tokens_ = 0;
  std::vector<IdRun> runs_;
  std::vector<uint32_t> tokens_;  // Empty when made of ids.
};

}  // namespace cairn::replay
