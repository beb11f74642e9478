#include "tests/sim/node/peer_store.h"

#include <grpcpp/support/slice.h>

#include <limits>

namespace cairn::sim {

absl::StatusOr<node::BlockRecords> PeerStore::Describe(const node::PullTarget& target,
                                                       absl::Span<const BlockKey> keys) {
  return store_->DescribeBlocks(target.tenant, target.fingerprint, keys,
                                std::numeric_limits<uint64_t>::max());
}

absl::Status PeerStore::Fetch(const node::PullTarget& target, absl::Span<const BlockKey> keys,
                              Sink sink) {
  const PayloadMap* map = store_->FindPayloadMap(target.fingerprint);
  if (map == nullptr) return absl::FailedPreconditionError("the namespace is not known there");
  for (size_t block = 0; block < keys.size(); ++block) {
    const auto answer =
        store_->PinForRead(target.tenant, target.fingerprint, std::nullopt, keys[block]);
    if (!answer.ok()) return answer.status();
    absl::Status sent;
    if (answer->pin) {
      sent = SendBlock(answer->pin, *map, block, keys[block], sink);
    } else {
      FrameHeader header;
      PieceHeader& piece = header.pieces.emplace_back();
      piece.block = static_cast<uint32_t>(block);
      piece.state = static_cast<int32_t>(answer->state);
      sent = sink(header, SliceCursor());
    }
    if (!sent.ok()) return sent;
  }
  return absl::OkStatus();
}

absl::Status PeerStore::SendBlock(const node::BlockPin& pin, const PayloadMap& map, size_t block,
                                  const BlockKey& key, Sink sink) const {
  for (size_t segment = 0; segment < map.segment_count(); ++segment) {
    if (!pin.SegmentPresent(segment)) continue;
    const SegmentId id = map.SegmentAt(segment);
    const absl::Span<const uint8_t> bytes =
        pin.bytes().subspan(map.SegmentOffset(segment), map.SegmentBytesAt(segment));
    FrameHeader header;
    PieceHeader& piece = header.pieces.emplace_back();
    piece.block = static_cast<uint32_t>(block);
    piece.group = id.group;
    piece.slice = id.slice;
    piece.layer = id.layer;
    piece.length = static_cast<uint32_t>(bytes.size());
    piece.digests = {pin.digests()[segment]};
    const grpc::Slice slice(bytes.data(), bytes.size());
    if (absl::Status taken = sink(header, SliceCursor({&slice, 1})); !taken.ok()) return taken;
    if (absl::Status goes_on = after_frame_(key); !goes_on.ok()) return goes_on;
  }
  return absl::OkStatus();
}

}  // namespace cairn::sim
