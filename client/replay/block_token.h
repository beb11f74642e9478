// The tokens that stand for a block of which a trace gives only a hash id.
//
// The same (namespace, id) gives the same tokens in every program and every run; blocks of other
// ids, and of the same id in another namespace, get other tokens.
#pragma once

#include <cstdint>

namespace cairn::replay {

// As large as today's vocabularies, so that messages are as long as real ones; a power of two.
inline constexpr uint32_t kVocabulary = uint32_t{1} << 17;

inline constexpr uint64_t kSplitMixStep = 0x9e3779b97f4a7c15;

// One step of the splitmix64 generator: its next output from `state`, which then moves on by
// kSplitMixStep. A bijection.
constexpr uint64_t SplitMix64(uint64_t state) {
  state += kSplitMixStep;
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
  state = (state ^ (state >> 27)) * 0x94d049bb133111eb;
  return state ^ (state >> 31);
}

// Where the tokens of a block start: output i of splitmix64 from here is token i.
constexpr uint64_t BlockSeed(uint64_t name_space, uint64_t hash_id) {
  return SplitMix64(SplitMix64(name_space) ^ hash_id);
}

constexpr uint32_t BlockToken(uint64_t block_seed, uint64_t index) {
  return static_cast<uint32_t>(SplitMix64(block_seed + index * kSplitMixStep) % kVocabulary);
}

}  // namespace cairn::replay
