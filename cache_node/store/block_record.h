// BlockRecord: all that is known of a block beside its bytes and their digests, for a node that is
// to hold a copy. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cache_node/store/retention.h"
#include "cache_node/store/store_types.h"
#include "cache_node/tiers/provenance.h"
#include "common/base/bytes16.h"

namespace cairn::node {

struct BlockScope {
  BlockKey digest;  // scope_digest.h.
  std::string adapter;
  std::string salt;

  friend bool operator==(const BlockScope&, const BlockScope&) = default;
};

struct BlockRecord {
  BlockState state = BlockState::kNeverSeen;
  // The rest only of kHost.
  std::optional<BlockKey> parent = std::nullopt;
  bool parent_public = false;  // It is one of the tenant `public`, and this block is not.
  uint32_t scope = 0;          // Index in BlockRecords::scopes.
  std::vector<uint32_t> tokens = {};
  Provenance provenance = {};
  Retention retention = {};
};

struct BlockRecords {
  std::vector<BlockScope> scopes;
  std::vector<BlockRecord> blocks;  // One a key.
};

}  // namespace cairn::node
