#include "tests/cache_node/pull/store_source.h"

#include <grpcpp/support/slice.h>

#include <limits>

namespace cairn::node {

absl::StatusOr<BlockRecords> StoreSource::Describe(const PullTarget& target,
                                                   absl::Span<const BlockKey> keys) {
  ++descriptions_;
  BlockRecords records = peer_->store->DescribeBlocks(target.tenant, target.fingerprint, keys,
                                                      std::numeric_limits<uint64_t>::max());
  if (bend_records) bend_records(records);
  return records;
}

absl::Status StoreSource::Promote(const PullTarget&, absl::Span<const BlockKey>) {
  return absl::OkStatus();
}

absl::Status StoreSource::Fetch(const PullTarget& target, absl::Span<const BlockKey> keys,
                                Sink sink) {
  ++transfers_;
  const PayloadMap* map = peer_->store->FindPayloadMap(target.fingerprint);
  for (size_t block = 0; block < keys.size(); ++block) {
    const auto answer =
        peer_->store->PinForRead(target.tenant, target.fingerprint, std::nullopt, keys[block]);
    if (!answer.ok()) return answer.status();
    if (!answer->pin) {
      FrameHeader header;
      PieceHeader& piece = header.pieces.emplace_back();
      piece.block = static_cast<uint32_t>(block);
      piece.state = static_cast<int32_t>(answer->state);
      if (absl::Status taken = sink(header, SliceCursor()); !taken.ok()) return taken;
      continue;
    }
    for (size_t segment = 0; segment < map->segment_count(); ++segment) {
      if (!answer->pin.SegmentPresent(segment)) continue;
      if (absl::Status sent = Send(answer->pin, block, segment, sink); !sent.ok()) return sent;
    }
  }
  return absl::OkStatus();
}

absl::Status StoreSource::Send(const BlockPin& pin, size_t block, size_t segment, Sink sink) {
  const size_t frame = frames_++;
  if (before_frame) {
    if (absl::Status broken = before_frame(frame); !broken.ok()) return broken;
  }
  const PayloadMap* map = peer_->store->FindPayloadMap(peer_->fingerprint());
  const SegmentId id = map->SegmentAt(segment);
  const absl::Span<const uint8_t> bytes =
      pin.bytes().subspan(map->SegmentOffset(segment), map->SegmentBytesAt(segment));
  std::string payload(bytes.begin(), bytes.end());
  if (corrupt_frame == frame) payload[payload.size() / 2] ^= 1;
  FrameHeader header;
  PieceHeader& piece = header.pieces.emplace_back();
  piece.block = static_cast<uint32_t>(block);
  piece.group = id.group;
  piece.slice = id.slice;
  piece.layer = id.layer;
  piece.length = static_cast<uint32_t>(payload.size());
  piece.digests = {pin.digests()[segment]};
  if (bend_frame) bend_frame(header);
  const grpc::Slice slice(payload);
  return sink(header, SliceCursor({&slice, 1}));
}

void StoreSource::ReportMismatch(const PullTarget&, const BlockKey& key, const SegmentId&) {
  reported_.push_back(key);
}

}  // namespace cairn::node
