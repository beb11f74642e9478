// Layouts, prompts and memory that the data path's figures move.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cpp/cache_node_client.h"
#include "common/identity/layout.h"

namespace cairn::bench {

// Parts of 2 MiB, one a block: 32 layers of 64 KiB, 128 KiB a token.
Layout TwoMebibyteParts();
// Blocks of 1 MiB in four slices: parts of 256 KiB of 16 layers, one a rank.
Layout QuarterMebibyteParts();
// Blocks of 4 KiB in one segment.
Layout FourKibibyteBlocks();
// Blocks of 64 bytes: for lookups.
Layout TinyBlocks();

absl::StatusOr<NamespaceHandle> RegisterLayout(CacheNodeClient& client, const Layout& layout);

// Prompt number `number` of `blocks` full blocks; no two numbers share a key. Owns its tokens.
class BenchPrompt {
 public:
  BenchPrompt(const CacheNodeClient& client, const NamespaceHandle& name_space, uint32_t number,
              size_t blocks);
  BenchPrompt(const BenchPrompt&) = delete;
  BenchPrompt& operator=(const BenchPrompt&) = delete;

  const Prompt& prompt() const { return prompt_; }
  const std::vector<BlockKey>& keys() const { return prompt_.keys(); }

 private:
  std::vector<uint32_t> tokens_;
  Prompt prompt_;
};

// Touched memory with bytes that compress badly.
std::vector<uint8_t> MakeBytes(uint64_t size);

// Puts the whole prompt, block i from `bytes` at i * block_bytes, round and round. Not OK unless
// every block was written by this call.
absl::Status PutAll(CacheNodeClient& client, const NamespaceHandle& name_space,
                    const Prompt& prompt, absl::Span<const uint8_t> bytes, PutOptions options = {});
// Removes it again.
absl::Status Remove(CacheNodeClient& client, const NamespaceHandle& name_space,
                    absl::Span<const BlockKey> keys);
// Gets the parts (empty: all) of the keys, block i to `bytes` at i * bytes of the parts. Not OK
// unless all of it came and was verified.
absl::Status GetAll(CacheNodeClient& client, const NamespaceHandle& name_space,
                    absl::Span<const BlockKey> keys, const std::vector<PartLayers>& parts,
                    absl::Span<uint8_t> bytes, std::optional<LeaseId> lease = std::nullopt);

}  // namespace cairn::bench
