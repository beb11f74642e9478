// HitCounts: what one cache of one size hit on a trace.
#pragma once

#include <cstdint>

namespace cairn::bench {

struct HitCounts {
  uint64_t hit_blocks = 0;
  uint64_t hit_tokens = 0;
  double saved_prefill_seconds = 0;

  // A request whose first `tokens` tokens, in `blocks` blocks, were there.
  void Add(uint64_t blocks, uint64_t tokens);
};

// Time that computing the first `tokens` tokens of a prompt takes: each token costs the same and,
// in attention, as much again for each kAttentionTokens before it. So late blocks cost more than
// early ones. The constants are those of a model of 70e9 weights, 80 layers and 8,192 values a
// token (2 * 70e9 operations a token, 4 * 80 * 8,192 a token and position), at kTokensPerSecond.
inline constexpr double kTokensPerSecond = 10'000;
inline constexpr double kAttentionTokens = 2 * 70e9 / (4.0 * 80 * 8192);

inline double PrefillSeconds(uint64_t tokens) {
  const auto count = static_cast<double>(tokens);
  return count * (1 + count / (2 * kAttentionTokens)) / kTokensPerSecond;
}

inline void HitCounts::Add(uint64_t blocks, uint64_t tokens) {
  hit_blocks += blocks;
  hit_tokens += tokens;
  saved_prefill_seconds += PrefillSeconds(tokens);
}

}  // namespace cairn::bench
