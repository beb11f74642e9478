// Routed prompts by hand: replicas "node-N" with what each holds and how busy it is.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "router/replication/replication_types.h"

namespace cairn::router {

inline constexpr uint32_t kBlockTokens = 256;

inline BlockKey KeyOf(uint32_t prompt, uint32_t block) {
  BlockKey key;
  for (size_t i = 0; i < 4; ++i) {
    key.bytes[i] = static_cast<uint8_t>(prompt >> (8 * i));
    key.bytes[4 + i] = static_cast<uint8_t>(block >> (8 * i));
  }
  return key;
}

// `shared` blocks that all prompts begin with, then `own` blocks of this one.
inline std::vector<BlockKey> KeysOf(uint32_t shared, uint32_t prompt, uint32_t own) {
  std::vector<BlockKey> keys;
  for (uint32_t i = 0; i < shared; ++i) keys.push_back(KeyOf(0, i));
  for (uint32_t i = 0; i < own; ++i) keys.push_back(KeyOf(prompt + 1, i));
  return keys;
}

inline RankedReplica NodeWith(int number, uint64_t blocks, double queued_seconds) {
  RankedReplica replica;
  replica.node_id = absl::StrCat("node-", number);
  replica.worker_address = absl::StrCat("worker-", number);
  replica.node_addresses = {absl::StrCat("10.0.0.", number, ":7070")};
  replica.matched.fed[1] = blocks * kBlockTokens;
  replica.holder_state = HolderState::kExact;
  replica.terms.queued_seconds = queued_seconds;
  return replica;
}

}  // namespace cairn::router
