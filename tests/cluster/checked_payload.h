// Payload that is known from its key, so that a reader compares every byte with what was written.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "client/cpp/cache_node_client.h"
#include "client/cpp/segment_buffers.h"
#include "tests/cluster/numbered_prompt.h"

namespace cairn::testing {

// The synthetic bytes of some blocks, as a source for writes. Borrows the namespace.
class PayloadOf {
 public:
  PayloadOf(const NamespaceHandle& name_space, absl::Span<const BlockKey> keys);

  absl::Span<const uint8_t> operator()(size_t block, const SegmentId& id) const {
    return blocks_(block, id);
  }

 private:
  std::vector<uint8_t> bytes_;
  ContiguousBlocks blocks_;
};

// Writes every block of the prompt that is not there.
absl::StatusOr<PutResult> PutPrompt(CacheNodeClient& client, const NamespaceHandle& name_space,
                                    const Prompt& prompt, bool wait_when_exhausted = false);

struct CheckedRead {
  GetResult result;
  // Segments said to be good that hold other bytes than were written for their key, segments not
  // good that hold any byte but 0, and mismatches that the client found. Never anything but 0.
  uint64_t wrong = 0;
};

// Gets whole blocks and compares them byte by byte.
CheckedRead GetAndCompare(CacheNodeClient& client, const NamespaceHandle& name_space,
                          absl::Span<const BlockKey> keys, const GetOptions& options = {});

struct LeasedRead {
  uint32_t present = 0;  // Blocks that the lookup said are there.
  uint32_t leased = 0;
  uint32_t usable = 0;  // Blocks read.
  uint64_t wrong = 0;   // As CheckedRead's.
  absl::Status get;     // Of the Get, and of the lease's end.
};

// Looks the prompt up under these options, with a lease of one reader, and compares what is leased.
// Not OK when the lookup failed.
absl::StatusOr<LeasedRead> LeaseAndCompare(CacheNodeClient& client,
                                           const NamespaceHandle& name_space,
                                           const NumberedPrompt& prompt, LookupOptions options);

// Compares what a Get of these keys left in `bytes`, whole blocks in slot order.
uint64_t CountWrong(const NamespaceHandle& name_space, absl::Span<const BlockKey> keys,
                    absl::Span<const uint8_t> bytes, const GetResult& result);

}  // namespace cairn::testing
