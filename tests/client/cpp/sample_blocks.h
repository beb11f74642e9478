// Namespaces, keys and honest Get frames for the client's tests.
#pragma once

#include <algorithm>
#include <vector>

#include "cairn/v1/cache_node.pb.h"
#include "client/cpp/namespace_handle.h"
#include "client/cpp/segment_selection.h"
#include "client/cpp/synthetic_payload.h"
#include "common/base/check.h"
#include "common/identity/segment_digest.h"
#include "common/wire/limits.h"
#include "tests/testing/identity_samples.h"

namespace cairn::testing {

// Two groups, two slices of the first; the second is optional.
inline Namespace TwoGroups() {
  Namespace fields = SampleNamespace();
  fields.layout.slices = 2;
  fields.layout.groups[0].layers = 3;
  Group draft = SampleGroup();
  draft.kind = GroupKind::kDraft;
  draft.required = 0;
  fields.layout.groups.push_back(draft);
  return fields;
}

// Segments of 1.5 MiB, so that frames cut them.
inline Namespace LargeSegments() {
  Namespace fields = SampleNamespace();
  fields.layout.groups[0].kv_heads = 64;
  fields.layout.groups[0].key_dim = 384;
  fields.layout.groups[0].value_dim = 384;
  return fields;
}

inline NamespaceHandle HandleOf(const Namespace& fields) {
  absl::StatusOr<NamespaceHandle> handle = NamespaceHandle::Make("sample", fields);
  CAIRN_CHECK_OK(handle.status());
  return *std::move(handle);
}

inline std::vector<BlockKey> SampleKeys(size_t count) {
  std::vector<BlockKey> keys(count);
  for (size_t i = 0; i < count; ++i) {
    for (size_t at = 0; at < kKeyBytes; ++at) {
      keys[i].bytes[at] = static_cast<uint8_t>(17 * i + 31 * at + 5);
    }
  }
  return keys;
}

inline std::vector<uint8_t> SyntheticSegment(const PayloadMap& map, const BlockKey& key,
                                             const SegmentId& id) {
  std::vector<uint8_t> bytes(map.SegmentBytesAt(*map.FindSegment(id)));
  FillSyntheticSegment(map, key, id, absl::MakeSpan(bytes));
  return bytes;
}

// What an honest node answers: synthetic payload, segments one piece each, cut at frame ends.
inline std::vector<v1::GetResponse> HonestFrames(const PayloadMap& map,
                                                 const SegmentSelection& selection,
                                                 const std::vector<BlockKey>& keys) {
  std::vector<v1::GetResponse> frames(1);
  for (uint32_t block = 0; block < keys.size(); ++block) {
    for (size_t i = 0; i < selection.segment_count(); ++i) {
      const SegmentId& id = selection.At(i).id;
      const std::vector<uint8_t> bytes = SyntheticSegment(map, keys[block], id);
      for (size_t at = 0; at < bytes.size();) {
        size_t room = kFramePayloadBytesMax - frames.back().payload().size();
        if (room == 0 || (room < bytes.size() && bytes.size() <= kFramePayloadBytesMax)) {
          frames.emplace_back();
          room = kFramePayloadBytesMax;
        }
        const size_t take = std::min(room, bytes.size() - at);
        v1::Piece* piece = frames.back().add_pieces();
        piece->set_block(block);
        piece->set_group(id.group);
        piece->set_slice(id.slice);
        piece->set_layer(id.layer);
        piece->set_offset(static_cast<uint32_t>(at));
        piece->set_length(static_cast<uint32_t>(take));
        piece->add_digests(SegmentDigest(keys[block], id, bytes));
        frames.back().mutable_payload()->append(reinterpret_cast<const char*>(bytes.data()) + at,
                                                take);
        at += take;
      }
    }
  }
  return frames;
}

}  // namespace cairn::testing
