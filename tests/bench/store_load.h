// StoreLoad: writes blocks into a node of this process as fast as it is told to, for measuring what
// that does to others.
//
// It stands for writers on other machines: it goes to the store past the network, so that the
// processor is the node's. Every block is hashed twice, by the writer and by the store, as always.
// Blocks come in prompts of kPromptBlocks with random keys. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache_node/store/block_store.h"
#include "common/base/random_source.h"
#include "common/identity/fingerprint.h"
#include "common/identity/payload_map.h"

namespace cairn::bench {

class StoreLoad {
 public:
  static constexpr size_t kPromptBlocks = 8;

  // The namespace is registered with the store, which outlives this.
  StoreLoad(node::BlockStore* store, const Fingerprint& fingerprint);

  // One more prompt; its keys. RESOURCE_EXHAUSTED: there is no room now.
  absl::StatusOr<std::vector<BlockKey>> PutPrompt();

 private:
  absl::Status WriteBlock(const TokenId& token, uint32_t block, const BlockKey& key);

  node::BlockStore* const store_;
  const Fingerprint fingerprint_;
  const PayloadMap* const map_;
  SecureRandom random_;
  std::vector<uint8_t> payload_;  // Of any block: its digests differ with the key.
};

}  // namespace cairn::bench
