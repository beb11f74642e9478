// StoreSource: a PullSource that serves the blocks of a TestStore, a segment a frame, and does
// wrong as it is told. For one test thread, but for what a test guards itself.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cache_node/pull/pull_source.h"
#include "tests/cache_node/store/test_store.h"

namespace cairn::node {

class StoreSource final : public PullSource {
 public:
  explicit StoreSource(TestStore* peer) : peer_(peer) {}

  absl::StatusOr<BlockRecords> Describe(const PullTarget& target,
                                        absl::Span<const BlockKey> keys) override;
  absl::Status Promote(const PullTarget&, absl::Span<const BlockKey>) override;
  absl::Status Fetch(const PullTarget& target, absl::Span<const BlockKey> keys, Sink sink) override;
  void ReportMismatch(const PullTarget& target, const BlockKey& key,
                      const SegmentId& segment) override;

  // Before each frame, counted over all transfers from 0. Not OK: the transfer breaks with it.
  std::function<absl::Status(size_t frame)> before_frame;
  // The frame's header, before it is sent.
  std::function<void(FrameHeader&)> bend_frame;
  std::function<void(BlockRecords&)> bend_records;
  // Frame whose payload has a wrong byte.
  std::optional<size_t> corrupt_frame;

  size_t frames() const { return frames_; }
  size_t transfers() const { return transfers_; }
  size_t descriptions() const { return descriptions_; }
  const std::vector<BlockKey>& reported() const { return reported_; }

 private:
  absl::Status Send(const BlockPin& pin, size_t block, size_t segment, Sink sink);

  TestStore* const peer_;
  size_t frames_ = 0;
  size_t transfers_ = 0;
  size_t descriptions_ = 0;
  std::vector<BlockKey> reported_;
};

}  // namespace cairn::node
