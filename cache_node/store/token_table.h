// TokenTable: the write tokens that are known, and which of them have expired.
//
// A token covers the blocks that one Reserve took, for all ranks of its writer. It lives until its
// expiry, which writes push on within a bound, or until it is aborted; a token whose blocks are all
// present stays known, so that a repeated Commit gets its answer. Not thread-safe: under the
// store's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "cache_node/store/block_entry.h"
#include "cache_node/store/eviction_policy.h"

namespace cairn::node {

// What a token knows of one block of its Reserve, by the index in the reservation's keys.
struct TokenBlock {
  bool reserved = false;        // By this token; else the block was there, or another's.
  bool present = false;         // It was reserved and became present.
  BlockEntry* entry = nullptr;  // Null again once it has left the index.
};

// A segment that arrives in pieces.
struct OpenSegment {
  uint64_t writer = 0;
  uint64_t digest = 0;
  size_t next_offset = 0;
  bool in_flight = false;  // A piece of it is being filled.
};

struct Token {
  // (index of the block, segment)
  using SegmentPlace = std::pair<uint32_t, size_t>;

  TokenId id;
  TenantIndex tenant = 0;
  NamespaceRecord* name_space = nullptr;
  uint64_t epoch = 0;          // Of the namespace, when it was given out.
  UseStamp stamp = 0;          // Of all its blocks.
  uint32_t prompt_blocks = 0;  // As policies are told,
  uint32_t prompt_hits = 0;    // and that were there already.
  absl::Time born;
  absl::Time expires;
  absl::Time due;  // Its place in the order of expiry; not after `expires`.
  absl::Duration ttl;
  bool closing = false;
  std::vector<TokenBlock> blocks;
  uint32_t reserved = 0;  // Of blocks.
  uint32_t present = 0;
  uint32_t gone = 0;  // Left before they were present.
  absl::flat_hash_map<SegmentPlace, OpenSegment> open;
};

class TokenTable {
 public:
  // Open segments of one token: pieces of that many segments may be on their way at a time.
  static constexpr size_t kOpenSegmentsMax = 4096;
  // Blocks that all tokens together name: 16 MiB of TokenBlock.
  static constexpr size_t kBlocksMax = size_t{1} << 20;

  explicit TokenTable(size_t tokens_max) : tokens_max_(tokens_max) {}

  // Whether one more that names so many blocks fits. Those that are closing do not count.
  bool HasRoom(size_t blocks) const {
    return open_ < tokens_max_ && blocks <= kBlocksMax - blocks_;
  }
  size_t size() const { return tokens_.size(); }
  // The oldest of those whose blocks are all present or gone, to be closed for others; null when
  // there is none.
  Token* OldestSettled() const;

  Token* Add(std::unique_ptr<Token> token);
  // Null when unknown, another tenant's, closing, or expired at `now`.
  Token* Find(const TokenId& id, TenantIndex tenant, absl::Time now) const;
  // Any token of that id that is not closing and not expired, whosever it is.
  Token* FindAny(const TokenId& id, absl::Time now) const;

  // Its numbers of blocks changed.
  void Counted(Token* token);
  // Pushes the expiry to now + ttl, within `life_max` of its birth.
  void Renew(Token* token, absl::Time now, absl::Duration life_max);
  // One step: looks at the token that is due first. Answers it when it has expired, out of the
  // order and marked closing; null otherwise. `done` once nothing is due.
  Token* StepExpired(absl::Time now, bool* done);
  // Out of the order of expiry, and not found any more.
  void MarkClosing(Token* token);
  void Erase(Token* token);

 private:
  const size_t tokens_max_;
  absl::flat_hash_map<TokenId, std::unique_ptr<Token>> tokens_;
  absl::btree_set<std::pair<absl::Time, TokenId>> due_;
  absl::btree_set<std::pair<absl::Time, TokenId>> settled_;  // By birth.
  size_t open_ = 0;                                          // Not closing,
  size_t blocks_ = 0;                                        // and the blocks that those name.
};

}  // namespace cairn::node
