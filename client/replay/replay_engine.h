// ReplayEngine: an engine whose KV follows from the keys, so that any wrong byte is found.
//
// What it "computes" is synthetic payload (synthetic_payload.h); what comes from a cache is
// compared with the same, byte by byte, beside the digests that the client checked. One for each
// worker, for one request after the other. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/cpp/namespace_handle.h"
#include "client/cpp/prefill_engine.h"
#include "client/cpp/prompt.h"
#include "client/replay/replica_queues.h"

namespace cairn::replay {

// Bytes of one prompt's blocks: each worker has room for as many as its longest prompt took.
inline constexpr uint64_t kPromptBytesMax = uint64_t{1} << 30;

class ReplayEngine final : public PrefillEngine {
 public:
  // Borrows both.
  ReplayEngine(const NamespaceHandle* name_space, ReplicaQueues* queues);

  // Makes room for a request's blocks, which is kept for later ones. The prompt stays until the
  // next one. RESOURCE_EXHAUSTED, and nothing done, for a prompt of over kPromptBytesMax.
  absl::Status Begin(const Prompt* prompt);

  // Of the blocks that were taken from the cache, since Begin.
  uint64_t wrong_bytes() const { return wrong_bytes_; }

  void UsePrompt(const Prompt& prompt) override;
  absl::Span<uint8_t> PlaceOf(size_t block, const SegmentId& id) override;
  absl::StatusOr<absl::Duration> Compute(const std::string& worker_address,
                                         size_t first_block) override;
  absl::Span<const uint8_t> BytesOf(size_t block, const SegmentId& id) override;

 private:
  absl::Span<uint8_t> BlockAt(size_t block);

  const NamespaceHandle* name_space_;
  ReplicaQueues* queues_;
  const Prompt* prompt_ = nullptr;
  std::vector<uint8_t> bytes_;     // The prompt's blocks, one after the other.
  std::vector<uint8_t> expected_;  // One block.
  uint64_t wrong_bytes_ = 0;
};

}  // namespace cairn::replay
