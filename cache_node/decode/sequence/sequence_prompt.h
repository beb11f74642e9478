// SequencePrompt: what a sequence knows of the prompt that it continues: its tokens, and what the
// keys of its blocks depend on. A plain value; immutable once a sequence has it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/bytes16.h"
#include "common/identity/key_chain.h"
#include "common/identity/scope.h"

namespace cairn::node {

struct SequencePrompt {
  struct Region {
    Scope scope;               // Its tenant is resolved, never a bare field of a request.
    uint32_t first_block = 0;  // Of the whole prompt.
  };

  KeyRules rules;
  // One or two, in order; the last one goes on behind the prompt. None: the prompt was given by
  // keys alone, and nothing is sealed.
  std::vector<Region> regions;
  std::vector<BlockKey> keys;    // Of its full blocks, from its start.
  std::vector<uint32_t> tokens;  // From its start, the partial last block's too; empty: not known.
  ExtrasByBlock extras;          // By block of the whole prompt.
  std::vector<std::string> external_ids;  // By block of the whole prompt; key scheme 2.

  // About what it takes, in bytes.
  uint64_t Bytes() const {
    uint64_t bytes = sizeof(*this) + keys.size() * sizeof(BlockKey) + tokens.size() * 4;
    for (const std::string& id : external_ids) bytes += sizeof(id) + id.size();
    for (const auto& [block, items] : extras) bytes += 64 + items.size() * sizeof(ExtraItem);
    return bytes;
  }
};

}  // namespace cairn::node
