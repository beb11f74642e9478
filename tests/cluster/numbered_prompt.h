// Prompts and namespaces that every process of a test makes again from a few numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/cpp/cache_node_client.h"
#include "common/identity/layout.h"
#include "common/identity/namespace.h"

namespace cairn::testing {

// Blocks of 64 KiB: four slices of two layers.
Layout SmallBlocks();
// Blocks of 64 bytes, one segment: for tests about records, not bytes.
Layout TinyBlocks();
// Blocks of 8 MiB in eight segments.
Layout LargeBlocks();

Namespace NamespaceOf(const Layout& layout);

// The namespace under its own label, registered at the node; CHECKs that it worked.
NamespaceHandle Register(CacheNodeClient& client, const Layout& layout);

// Prompt number `number` of `blocks` full blocks; no two numbers (or salts) share a key. Owns its
// tokens. Neither copied nor moved.
class NumberedPrompt {
 public:
  NumberedPrompt(const CacheNodeClient& client, const NamespaceHandle& name_space, uint32_t number,
                 size_t blocks, const std::string& salt = "");

  NumberedPrompt(const NumberedPrompt&) = delete;
  NumberedPrompt& operator=(const NumberedPrompt&) = delete;

  const Prompt& prompt() const { return prompt_; }
  absl::Span<const Prompt> span() const { return {&prompt_, 1}; }
  const std::vector<BlockKey>& keys() const { return prompt_.keys(); }

 private:
  std::vector<uint32_t> tokens_;
  Prompt prompt_;
};

// The scope that NumberedPrompt uses.
Scope ScopeOf(const std::string& salt);

}  // namespace cairn::testing
