// BlockSink: where FeedTracker puts what a feed says.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/bytes16.h"
#include "common/identity/fingerprint.h"

namespace cairn::router {

class BlockSink {
 public:
  virtual ~BlockSink() = default;

  // A number for whose blocks a batch holds, good for the Set calls that follow at once.
  virtual absl::StatusOr<uint32_t> OwnerOf(const Fingerprint& fingerprint,
                                           absl::string_view tenant) = 0;
  // The key will be set soon: a hint.
  virtual void Expect(const BlockKey& /*key*/) {}
  // The block is now in `tiers` (0: gone). Returns where it was; nothing, and nothing done, when
  // there is no room.
  virtual std::optional<uint8_t> Set(uint32_t owner, const BlockKey& key, uint8_t tiers) = 0;
  // What was set of the shard is void.
  virtual void ClearShard(uint32_t shard) = 0;
};

}  // namespace cairn::router
