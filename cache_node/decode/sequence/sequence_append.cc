// Sequence: rows of new positions.
#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "cache_node/decode/sequence/kv_shape_of.h"
#include "cache_node/decode/sequence/row_check.h"
#include "cache_node/decode/sequence/sequence.h"
#include "common/base/check.h"
#include "common/identity/payload_size.h"
#include "kernels/append.h"

namespace cairn::node {

// Where rows go.
struct Sequence::Places {
  kernels::KvShape shape;                                 // Of one slice.
  absl::InlinedVector<const PayloadMap::Part*, 8> parts;  // By slice.
  uint64_t element_bytes = 0;
  uint64_t shortest = 0;  // Lengths of these slices' layer.
  uint64_t longest = 0;
};

absl::Status Sequence::CheckPlaces(const AppendRows& rows, Places* places) const {
  const Layout& layout = map().layout();
  if (rows.group >= layout.groups.size()) {
    return absl::InvalidArgumentError(absl::StrCat("group ", rows.group, " of a layout of ",
                                                   layout.groups.size(), ", which count from 0"));
  }
  const Group& group = layout.groups[rows.group];
  const uint32_t slices = SlicesOf(layout, group);
  if (rows.slices == 0 || rows.first_slice >= slices || rows.slices > slices - rows.first_slice) {
    return absl::InvalidArgumentError(absl::StrCat(
        "slices ", rows.first_slice, " and on, ", rows.slices, " of them, of a group of ", slices));
  }
  if (rows.layer >= group.layers) {
    return absl::InvalidArgumentError(absl::StrCat("layer ", rows.layer, " of a group of ",
                                                   group.layers, " layers, which count from 0"));
  }
  const absl::StatusOr<kernels::KvShape> shape = KvShapeOf(map(), rows.group);
  if (!shape.ok()) return shape.status();
  if (!kernels::IsWideFloat(rows.row_dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("row_dtype ", static_cast<uint32_t>(rows.row_dtype),
                     ": rows are float16 (1), bfloat16 (2) or float32 (3)"));
  }
  places->shape = *shape;
  places->element_bytes = kernels::BitsOf(rows.row_dtype) / 8;
  const uint64_t heads = uint64_t{rows.rows} * rows.slices * shape->kv_heads;
  const uint64_t key_bytes = heads * shape->key_dim * places->element_bytes;
  const uint64_t value_bytes = heads * shape->value_dim * places->element_bytes;
  if (rows.rows == 0 || rows.keys.size() != key_bytes || rows.values.size() != value_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(rows.rows, " rows with ", rows.keys.size(), " bytes of keys and ",
                     rows.values.size(), " of values: ", rows.slices * shape->kv_heads,
                     " KV heads of ", shape->key_dim, " and ", shape->value_dim, " elements of ",
                     places->element_bytes, " bytes make ", key_bytes, " and ", value_bytes));
  }
  const size_t first_part = *map().FindPart(rows.group, rows.first_slice);
  places->shortest = UINT64_MAX;
  for (size_t i = 0; i < rows.slices; ++i) {
    places->parts.push_back(&map().parts()[first_part + i]);
    const uint64_t length = lengths_[places->parts[i]->first_segment + rows.layer];
    places->shortest = std::min(places->shortest, length);
    places->longest = std::max(places->longest, length);
  }
  return absl::OkStatus();
}

absl::Status Sequence::CheckPositions(const AppendRows& rows, const Places& places) const {
  if (rows.position < first_token()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "position ", rows.position, " is before the sequence, which begins at ", first_token()));
  }
  if (rows.position > places.shortest) {
    return absl::FailedPreconditionError(
        absl::StrCat("position ", rows.position, " leaves a hole: layer ", rows.layer,
                     " of these slices holds ", places.shortest, " tokens: append from there"));
  }
  const uint64_t end = rows.position + rows.rows;
  if (end <= places.shortest) return absl::OkStatus();
  if (end > capacity_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("rows up to position ", end, " are past the reservation, which ends at ",
                     capacity_, ": open or fork with a larger reserve_tokens"));
  }
  if (places.shortest < covered_tokens()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "group ", rows.group, " of positions from ", places.shortest, " to ", covered_tokens(),
        " was not stored with the prompt's blocks, and those are not written: open the sequence "
        "with fewer blocks"));
  }
  if (places.shortest < released().second) {
    return absl::FailedPreconditionError(absl::StrCat("positions up to ", released().second,
                                                      " were given back and take no more rows"));
  }
  return absl::OkStatus();
}

absl::Status Sequence::CheckTokens(const AppendRows& rows) const {
  if (!rows.tokens.empty() && rows.tokens.size() != rows.rows) {
    return absl::InvalidArgumentError(absl::StrCat(rows.tokens.size(), " tokens for ", rows.rows,
                                                   " rows: send one a row, or none"));
  }
  for (size_t i = 0; i < rows.tokens.size(); ++i) {
    const int64_t known = TokenAt(rows.position + i);
    if (known == kNoToken || known == int64_t{rows.tokens[i]}) continue;
    return absl::InvalidArgumentError(absl::StrCat("token ", rows.tokens[i], " at position ",
                                                   rows.position + i, ", where ", known,
                                                   " is known: truncate first"));
  }
  return absl::OkStatus();
}

absl::Status Sequence::Append(const AppendRows& rows) {
  Places places;
  if (absl::Status status = CheckPlaces(rows, &places); !status.ok()) return status;
  if (absl::Status status = CheckPositions(rows, places); !status.ok()) return status;
  if (absl::Status status = CheckTokens(rows); !status.ok()) return status;
  for (const absl::string_view sent : {rows.keys, rows.values}) {
    const std::optional<size_t> bad = FirstUnstorable(sent, rows.row_dtype, places.shape.dtype);
    if (!bad.has_value()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "element ", *bad, " of the ", sent.data() == rows.keys.data() ? "keys" : "values",
        " is not a finite number as ", kernels::NameOf(places.shape.dtype), ": nothing stored"));
  }
  const uint64_t end = rows.position + rows.rows;
  if (end > places.shortest) {
    absl::Status status = MakeWritable(places.shortest / block_tokens_, (end - 1) / block_tokens_);
    if (!status.ok()) return status;
    for (size_t slice = 0; slice < places.parts.size(); ++slice) Write(rows, places, slice);
  }
  SetTokens(rows);
  for (const PayloadMap::Part* part : places.parts) {
    SetLength(part->first_segment + rows.layer, part->required, end);
  }
  return absl::OkStatus();
}

// Pages for the blocks from the first to the last, used by this sequence alone.
absl::Status Sequence::MakeWritable(uint64_t first_block, uint64_t last_block) {
  uint64_t taken = 0;
  for (uint64_t block = first_block; block <= last_block; ++block) taken += !CanWrite(block);
  if (taken == 0) return absl::OkStatus();
  // What the reservation is for begins at the first token that not all layers have. A group that
  // is not required may be behind that, in pages that forks share.
  const uint64_t length = length_tokens();
  uint64_t unforeseen = 0;
  for (uint64_t block = first_block; block <= last_block; ++block) {
    if (CanWrite(block)) continue;
    if (length == capacity_ || block < length / block_tokens_) ++unforeseen;
  }
  if (unforeseen > 0 || taken > reservation_.pages()) {
    const uint64_t needed = PagesNeeded() + unforeseen;
    if (needed > reservation_.pages()) {
      absl::Status status = reservation_.Grow(needed - reservation_.pages());
      if (!status.ok()) return status;
    }
  }
  for (uint64_t block = first_block; block <= last_block; ++block) {
    PageRef* const page = PageOf(block);
    if (page == nullptr) {
      PutPage(block, reservation_.Take());
    } else if (page->shared()) {
      if (SealHolds(*page)) reservation_.Join(std::move(seal_->spare));
      PutPage(block, reservation_.TakeCopyOf(*page));
    }
  }
  return absl::OkStatus();
}

// Rows that one slice's layer does not hold yet.
void Sequence::Write(const AppendRows& rows, const Places& places, size_t slice) {
  const PayloadMap::Part& part = *places.parts[slice];
  const uint64_t length = lengths_[part.first_segment + rows.layer];
  const uint64_t end = rows.position + rows.rows;
  if (end <= length) return;
  const uint64_t first_block = length / block_tokens_;
  absl::InlinedVector<kernels::WritableKvRegion, 4> regions;
  absl::InlinedVector<kernels::KvPage, 4> pages;
  for (uint64_t block = first_block; block * block_tokens_ < end; ++block) {
    const absl::Span<std::byte> bytes = PageOf(block)->bytes();
    pages.push_back({.region = regions.size(), .offset = 0});
    regions.push_back({.base = bytes.data(), .bytes = bytes.size()});
  }
  absl::InlinedVector<int64_t, 16> slots;
  for (uint64_t position = length; position < end; ++position) {
    slots.push_back(static_cast<int64_t>(position - first_block * block_tokens_));
  }
  const auto rows_of = [&](absl::string_view sent, uint32_t dim) {
    const uint64_t head_bytes = dim * places.element_bytes;
    const uint64_t token_bytes = rows.slices * places.shape.kv_heads * head_bytes;
    const uint64_t skipped = (length - rows.position) * token_bytes;
    return kernels::TokenRows{.data = reinterpret_cast<const std::byte*>(sent.data()) + skipped +
                                      slice * places.shape.kv_heads * head_bytes,
                              .token_stride = token_bytes,
                              .head_stride = head_bytes};
  };
  kernels::AppendBatch batch;
  batch.shape = places.shape;
  batch.source_dtype = rows.row_dtype;
  batch.regions = regions.data();
  batch.region_count = regions.size();
  batch.segment_offset = part.offset + rows.layer * part.segment_bytes;
  batch.pages = pages.data();
  batch.page_count = pages.size();
  batch.slots = slots.data();
  batch.token_count = slots.size();
  batch.keys = rows_of(rows.keys, places.shape.key_dim);
  if (places.shape.value_dim > 0) batch.values = rows_of(rows.values, places.shape.value_dim);
  const kernels::Problem problem = kernels::AppendTokens(batch);
  CAIRN_CHECK_MSG(problem.empty(), problem);
}

void Sequence::SetTokens(const AppendRows& rows) {
  const uint64_t base = later_base();
  for (size_t i = 0; i < rows.tokens.size(); ++i) {
    const uint64_t position = rows.position + i;
    if (position < base) continue;
    const uint64_t at = position - base;
    if (at >= later_tokens_.size()) later_tokens_.resize(at + 1, kNoToken);
    later_tokens_[at] = rows.tokens[i];
  }
}

void Sequence::SetLength(size_t segment, bool required, uint64_t length) {
  const uint64_t before = lengths_[segment];
  if (length <= before) return;
  lengths_[segment] = length;
  end_ = std::max(end_, length);
  if (!required || before >= edge_ || length < edge_) return;
  CAIRN_CHECK(lagging_ > 0);
  if (--lagging_ == 0) FindEdge();
}

}  // namespace cairn::node
