// RouteSnapshot: all that a policy may know when it ranks the replicas for one prompt. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "router/ids.h"

namespace cairn::router {

// Tokens a second at which a replica gets what its own node holds. 0: it cannot.
struct TransferRates {
  ByTier<double> own{};
};

struct ReplicaView {
  // The same in every router and every run.
  uint64_t stable_hash = 0;
  // Its node is in and not draining.
  bool available = false;

  // Booked here and not yet at its first token.
  uint64_t queued_prefill_tokens = 0;
  // Booked here and not ended: prompt and answer.
  uint64_t running_kv_tokens = 0;
  uint64_t requests = 0;
  // Of the worker's own memory; nothing where it is not known.
  std::optional<uint64_t> kv_tokens_max;
  double prefill_tokens_per_second = 0;

  // Consecutive tokens from the prompt's first that its own node has, each in its fastest tier,
  // and those that a booked request is writing there.
  ByTier<uint64_t> own_tokens{};
  uint64_t coming_tokens = 0;
  // How many more another node has, and how fast they come from there; 0: they cannot.
  uint64_t remote_tokens = 0;
  double remote_tokens_per_second = 0;

  uint64_t OwnTokens() const {
    uint64_t tokens = coming_tokens;
    for (const uint64_t in_tier : own_tokens) tokens += in_tier;
    return tokens;
  }
};

struct RouteSnapshot {
  std::vector<ReplicaView> replicas;
  uint64_t prompt_tokens = 0;
  uint64_t output_tokens = 0;
  uint32_t block_tokens = 0;  // 0: not known.
  TransferRates transfer;
  // Of the prompt's first four block keys, the same in every router; nothing for a prompt without a
  // full block.
  std::optional<uint64_t> prefix_hash;
  // Fresh for each prompt: what breaks ties.
  uint64_t random = 0;
  // Prompts that this router has ranked before it.
  uint64_t sequence = 0;
};

}  // namespace cairn::router
