// SequenceWorld: a small BlockStore, a SequenceTable over it, and the verbs of their tests: Put,
// Open, Append, Holds, ...
//
// What a row holds follows from its token, position, layer and head, so any stored row can be
// checked. Verbs that cannot fail in a sound table check their own success.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache_node/decode/sequence/sequence_table.h"
#include "tests/cache_node/store/test_store.h"

namespace cairn::node {

class SequenceWorld {
 public:
  static constexpr uint32_t kBlockTokens = TestStore::kBlockTokens;  // 4.
  static constexpr uint64_t kDecodeBytes = 256 << 10;

  // Group 0: full attention, 2 layers, 4 KV heads of 8 in 2 slices, float32. With `draft` also
  // group 1: one layer more, not required.
  static Namespace Shape(bool draft = true, const std::string& model = "model");
  static TestStoreOptions StoreOptions();
  static SequenceTable::Options TableOptions();

  explicit SequenceWorld(SequenceTable::Options options = TableOptions(),
                         const Namespace& fields = Shape(),
                         TestStoreOptions store = StoreOptions());
  ~SequenceWorld();

  // --- Opening ---
  struct Wish {
    uint32_t first_block = 0;
    uint32_t blocks_max = UINT32_MAX;
    uint64_t reserve_tokens = 32;
    absl::Duration idle = absl::ZeroDuration();
    std::vector<uint32_t> more_tokens = {};  // Of the prompt, behind its full blocks.
    std::string tenant = "t";
  };
  // Leases what is there of the prompt, pins it, and opens a sequence on it.
  absl::StatusOr<SequenceTable::Opened> TryOpen(const TestPrompt& prompt, const Wish& wish);
  SequenceId Open(const TestPrompt& prompt, const Wish& wish);
  SequenceId Open(const TestPrompt& prompt) { return Open(prompt, {}); }
  SequencePrompt PromptOf(const TestPrompt& prompt, const std::vector<uint32_t>& more) const;
  SequenceTable::Opening OpeningOf(const TestPrompt& prompt, const Wish& wish);

  // --- Rows ---
  struct Where {
    uint32_t group = 0;
    uint32_t first_slice = 0;
    uint32_t slices = 2;
    uint32_t layer = 0;
  };
  // Owns what AppendRows borrows.
  struct Rows {
    std::vector<uint32_t> tokens;
    std::string keys;
    std::string values;
    AppendRows rows;
  };
  Rows MakeRows(const Where& where, uint64_t position, std::vector<uint32_t> tokens) const;
  absl::Status TryAppend(const SequenceId& id, const Where& where, uint64_t position,
                         const std::vector<uint32_t>& tokens, const std::string& tenant = "t");
  // All layers of group 0, both slices at once.
  absl::Status Append(const SequenceId& id, uint64_t position, const std::vector<uint32_t>& tokens,
                      const std::string& tenant = "t");
  // Whether each layer of group 0 holds just these tokens from `position` on.
  ::testing::AssertionResult Holds(const SequenceId& id, uint64_t position,
                                   const std::vector<uint32_t>& tokens,
                                   const std::string& tenant = "t");
  // The same of one segment, up to where it ends.
  ::testing::AssertionResult SegmentHolds(const Sequence& sequence, const SegmentId& segment,
                                          uint64_t position, const std::vector<uint32_t>& tokens);
  // Whether a block's bytes, at `position`, are those that group 0 has for these tokens.
  ::testing::AssertionResult BlockHolds(const std::byte* slot, uint64_t position,
                                        const std::vector<uint32_t>& tokens);
  uint64_t Length(const SequenceId& id, const std::string& tenant = "t");

  // --- Ends ---
  absl::Status Audit() const;
  // Nothing is held any more by anyone.
  absl::Status Quiet();

  ::testing::AssertionResult RowHolds(const std::byte* slot, const SegmentId& segment,
                                      uint64_t position, uint32_t token);

  TestStore store;
  Sha256BlockHasher hasher;
  Namespace fields;
  Fingerprint fingerprint;
  const PayloadMap* map = nullptr;
  std::unique_ptr<SequenceTable> table;
};

}  // namespace cairn::node
