// Messages of served attention as the engine's values, and back. Stateless, so thread-safe.
#pragma once

#include <google/protobuf/repeated_ptr_field.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache_node/decode/engine/attend_shape.h"
#include "cache_node/decode/engine/decode_step.h"
#include "cache_node/decode/sequence/sequence.h"
#include "cache_node/decode/sequence/sequence_numbers.h"
#include "cairn/v1/decode.pb.h"
#include "cairn/v1/feed.pb.h"
#include "common/wire/decode_limits.h"

namespace cairn::node {

using AttendItems = google::protobuf::RepeatedPtrField<v1::AttendItem>;
using AttendResults = google::protobuf::RepeatedPtrField<v1::AttendResult>;

absl::StatusOr<AttendShape> ShapeFromProto(const PayloadMap& map,
                                           const v1::AttentionParameters& parameters);

// Items of one request that are answered one by one, fine or not. More are not even looked at, as
// small as they are on the wire.
inline constexpr int kItemsAnsweredMax = 4 * kDecodeItemsMax;
// INVALID_ARGUMENT, of the stream or call, when there are more.
absl::Status CheckItemCount(const AttendItems& items);

// Fills the step's items from messages that outlive it, and gives each a result within `results`;
// items whose target is malformed have their status then. With `sequences` a target may be one.
void ItemsFromProto(const AttendItems& items, bool sequences, DecodeStep* step,
                    AttendResults* results);

// What became of each item; the numbers are there already.
void StatusesToProto(const DecodeStep& step, AttendResults* results);
// The same for all items, where nothing was asked.
void RefuseAll(const absl::Status& status, DecodeStep* step);

void ToMessage(const Sequence& sequence, v1::GetSequenceResponse* message);
void ToMessage(const DecodeNumbers& numbers, uint64_t waiting, v1::DecodeReport* message);

}  // namespace cairn::node
