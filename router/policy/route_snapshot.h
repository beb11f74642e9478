// RouteSnapshot: all that a policy may know when it ranks the replicas for one prompt. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "router/feed/holder_state.h"
#include "router/ids.h"

namespace cairn::router {

// Tokens a second at which a replica gets what its own node holds. 0: it cannot.
struct TransferRates {
  ByTier<double> own{};

  friend bool operator==(const TransferRates&, const TransferRates&) = default;
};

struct ReplicaView {
  // The same in every router and every run.
  uint64_t stable_hash = 0;
  // Its node is in and not draining.
  bool available = false;
  // Of its node: how far what the index has of it can be trusted.
  HolderState holder_state = HolderState::kExact;
  // Share of recently predicted tokens that its cache did not deliver, 0 to 1: learned.
  double stale_share = 0;
  // Since its node was first heard of in this incarnation; nothing for those that were there when
  // the router began.
  std::optional<double> age_seconds;

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

  // The last prompt of the request's session went there.
  bool session_here = false;
  // Seconds that the request gave to the labels it prefers and that this one lacks.
  double lacking_label_seconds = 0;

  uint64_t OwnTokens() const {
    uint64_t tokens = coming_tokens;
    for (const uint64_t in_tier : own_tokens) tokens += in_tier;
    return tokens;
  }

  friend bool operator==(const ReplicaView&, const ReplicaView&) = default;
};

// Replicas that the request rules out, by the labels it requires or by name, are not in it.
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
  // The first token is wanted within so long; nothing: whenever.
  std::optional<double> deadline_seconds;

  friend bool operator==(const RouteSnapshot&, const RouteSnapshot&) = default;
};

}  // namespace cairn::router
