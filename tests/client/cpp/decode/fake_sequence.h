// FakeSequence: blocks and what was appended after them, attended over with the real CPU kernels.
//
// What a node's sequence or leased blocks are, in the plainest way: everything is copied, nothing
// shared. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "cairn/v1/decode.pb.h"
#include "client/cpp/decode/row_sizes.h"
#include "common/identity/payload_map.h"
#include "kernels/kv_segment.h"

namespace cairn::testing {

class FakeSequence {
 public:
  // Borrows the map. Begins at `first_token`, which is a block's first.
  FakeSequence(const PayloadMap* map, uint64_t first_token)
      : map_(map), first_token_(first_token) {}

  // A block of the cache. REQUIRES: nothing was appended; block_bytes of them.
  void Pin(const std::string& block);
  void Reserve(uint64_t tokens) { reserved_ = tokens; }

  uint64_t first_token() const { return first_token_; }
  uint64_t covered() const { return first_token_ + pinned_; }
  uint64_t reserved() const { return reserved_; }
  // The end of what a layer holds, and of what all of them do.
  uint64_t Length(uint32_t group, uint32_t slice, uint32_t layer) const;
  uint64_t Length() const;
  void Truncate(uint64_t length);

  // Appends what the item brings, then answers its queries.
  absl::Status Run(const v1::AttentionParameters& parameters, uint32_t layer,
                   const v1::AttendItem& item, v1::AttendResult* result);

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  using Page = std::vector<Line>;

  void AddPage();
  absl::Status Check(const RowSizes& sizes, const v1::AttentionParameters& parameters,
                     const v1::AttendItem& item) const;
  absl::Status Append(const v1::AttentionParameters& parameters, const RowSizes& sizes,
                      uint32_t layer, const v1::AttendItem& item);
  void Attend(const v1::AttentionParameters& parameters, const RowSizes& sizes, uint32_t layer,
              const v1::AttendItem& item, v1::AttendResult* result);
  kernels::KvShape ShapeOf(uint32_t group) const;
  uint64_t OffsetOf(uint32_t group, uint32_t slice, uint32_t layer) const;

  const PayloadMap* map_;
  uint64_t first_token_ = 0;
  uint64_t pinned_ = 0;  // Tokens.
  uint64_t reserved_ = 0;
  std::vector<Page> pages_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint64_t> appended_;
  std::map<uint64_t, uint32_t> tokens_;  // By position, of what was appended.
};

}  // namespace cairn::testing
