// PromptBook: the namespaces and every prompt of one simulation, and whose each key is.
//
// Prompts stay where they are. Not thread-safe.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "tests/sim/worker/sim_prompt.h"

namespace cairn::sim {

// What a key stands for.
struct KeyFacts {
  const NamespaceHandle* name_space = nullptr;
  Scope scope;
  BlockKey scope_digest;
};

class PromptBook {
 public:
  // Two namespaces: blocks of one segment, and blocks of two slices, two layers and an optional
  // group.
  PromptBook();

  PromptBook(const PromptBook&) = delete;
  PromptBook& operator=(const PromptBook&) = delete;

  const std::vector<NamespaceHandle>& namespaces() const { return namespaces_; }
  const NamespaceHandle* FindNamespace(const Fingerprint& fingerprint) const;

  const SimPrompt* Add(size_t name_space, std::vector<SimRegion> regions);
  const std::deque<SimPrompt>& prompts() const { return prompts_; }

  // Null for a key of no prompt.
  const KeyFacts* Find(const BlockKey& key) const;
  const absl::btree_map<BlockKey, KeyFacts>& keys() const { return keys_; }

 private:
  Sha256BlockHasher hasher_;
  std::vector<NamespaceHandle> namespaces_;
  std::deque<SimPrompt> prompts_;
  absl::btree_map<BlockKey, KeyFacts> keys_;
};

}  // namespace cairn::sim
