#include "kernels/attention/attention_strand.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "kernels/attention/merge.h"

namespace cairn::kernels {
namespace {

constexpr std::align_val_t kAlign{64};

uint64_t PadToLine(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

// Bits [begin, end) of the 64 that stand for tokens [first, first + 64).
uint64_t RangeBits(uint64_t begin, uint64_t end, uint64_t first) {
  const uint64_t low = begin > first ? begin - first : 0;
  const uint64_t high = end > first ? std::min<uint64_t>(end - first, kTileTokens) : 0;
  if (low >= high) return 0;
  const uint64_t upto = high == kTileTokens ? ~uint64_t{0} : (uint64_t{1} << high) - 1;
  return upto & ~((uint64_t{1} << low) - 1);
}

uint64_t VisibleBits(const Visibility& seen, uint64_t first) {
  return RangeBits(0, seen.sink_end, first) | RangeBits(seen.begin, seen.end, first);
}

// The next tile at or after `token` with a token that is seen, or `end`.
uint64_t NextSeenTile(const Visibility& seen, uint64_t token, uint64_t end) {
  if (token < seen.sink_end) return token;
  const uint64_t window = seen.begin / kTileTokens * kTileTokens;
  const uint64_t next = std::max(token, window);
  return next < std::min(end, seen.end) ? next : end;
}

}  // namespace

void AttentionStrand::FreeBytes::operator()(std::byte* bytes) const {
  ::operator delete[](bytes, kAlign);
}

void AttentionStrand::Prepare(const AttentionPlan& plan) {
  const TileGeometry& geometry = plan.geometry;
  const uint64_t row_bytes =
      std::max(RowBytes(geometry.dtype, geometry.key_dim), RowBytes(geometry.dtype, geometry.value_dim));
  const uint64_t tile_bytes = PadToLine(row_bytes * kTileTokens);
  const uint64_t queries = PadToLine(QueryBytes(geometry));
  const uint64_t output = PadToLine(OutputBytes(geometry));
  const uint64_t scratch = PadToLine(TileScratchBytes(geometry));
  const uint64_t blocks = (plan.rows_max + kBlockRows - 1) / kBlockRows;
  const uint64_t bytes = blocks * (queries + output) + scratch + 3 * tile_bytes;
  has_packed_ = false;
  if (bytes > memory_bytes_) {
    memory_.reset();
    memory_.reset(static_cast<std::byte*>(::operator new[](bytes, kAlign)));
    memory_bytes_ = bytes;
  }
  std::byte* at = memory_.get();
  for (uint64_t b = 0; b < blocks; ++b, at += queries + output) {
    blocks_[b].queries = at;
    blocks_[b].output = reinterpret_cast<float*>(at + queries);
  }
  scratch_ = at;
  gathered_keys_ = scratch_ + scratch;
  gathered_values_ = gathered_keys_ + tile_bytes;
  zeros_ = gathered_values_ + tile_bytes;
  std::memset(zeros_, 0, tile_bytes);
}

void AttentionStrand::RunItems(AttentionPlan* plan, uint64_t begin, uint64_t end) {
  Cursor cursor;
  cursor.item = plan->ItemAt(begin);
  cursor.items_left = end - begin;
  Place place, next;
  uint64_t partial = 0, next_partial = 0;
  if (!NextPlace(*plan, &cursor, &place)) return;
  Locate(*plan, place, &tile_.bytes, &partial);
  for (bool more = true; more; place = next, partial = next_partial) {
    more = NextPlace(*plan, &cursor, &next);
    if (more) {
      Locate(*plan, next, &tile_.next, &next_partial);
    } else {
      tile_.next.keys[0] = nullptr;
    }
    if (place.begins_item) BeginItem(*plan, place.item);
    Gather(*plan, place, partial);
    AttendTile(*plan, place);
    if (place.ends_item) FinishItem(plan, place.item);
    tile_.bytes = tile_.next;
  }
}

bool AttentionStrand::NextPlace(const AttentionPlan& plan, Cursor* cursor, Place* place) const {
  if (cursor->items_left == 0) return false;
  const SequencePlan& sequence = plan.PlanOf(cursor->item);
  const uint64_t begin = sequence.ChunkBegin(cursor->item.chunk);
  const uint64_t end = begin + sequence.chunk_tokens;
  place->begins_item = !cursor->inside;
  if (!cursor->inside) cursor->token = NextSeenTile(sequence.seen, begin, end);
  place->item = cursor->item;
  place->token = cursor->token;
  cursor->token = NextSeenTile(sequence.seen, cursor->token + kTileTokens, end);
  place->ends_item = cursor->token >= end;
  cursor->inside = !place->ends_item;
  if (place->ends_item) {
    --cursor->items_left;
    if (cursor->items_left > 0) plan.Advance(&cursor->item);
  }
  return true;
}

void AttentionStrand::Locate(const AttentionPlan& plan, const Place& place, TileBytes* bytes,
                             uint64_t* partial_octets) const {
  const KvShape& shape = plan.batch.shape;
  const KvPage* pages = plan.batch.sequences[place.item.sequence].pages;
  const uint64_t seen = VisibleBits(plan.PlanOf(place.item).seen, place.token);
  const uint64_t head_row = uint64_t{place.item.kv_head} * shape.page_tokens;
  const uint64_t key_row = RowBytes(shape.dtype, shape.key_dim);
  const uint64_t value_row = RowBytes(shape.dtype, shape.value_dim);
  *partial_octets = 0;
  for (uint32_t o = 0; o < kTileOctets; ++o) {
    const uint64_t octet_seen = (seen >> (o * kOctetTokens)) & 0xff;
    const uint64_t token = place.token + uint64_t{o} * kOctetTokens;
    const uint64_t slot = token % shape.page_tokens;
    bytes->keys[o] = zeros_;
    bytes->values[o] = zeros_;
    if (octet_seen == 0xff && slot + kOctetTokens <= shape.page_tokens) {
      const std::byte* at = SegmentAt(plan.batch.regions, pages[token / shape.page_tokens]);
      bytes->keys[o] = at + plan.segment.key + (head_row + slot) * key_row;
      bytes->values[o] = at + plan.segment.value + (head_row + slot) * value_row;
      if (shape.scales != KvScales::kNone && slot % kBlockRows == 0) {
        const uint64_t index = shape.scales == KvScales::kPerHead ? place.item.kv_head
                                                                  : head_row + slot;
        __builtin_prefetch(at + plan.segment.key_scales + index * sizeof(float));
        __builtin_prefetch(at + plan.segment.value_scales + index * sizeof(float));
      }
    } else if (octet_seen != 0) {
      *partial_octets |= uint64_t{1} << o;
    }
  }
}

void AttentionStrand::Gather(const AttentionPlan& plan, const Place& place,
                             uint64_t partial_octets) {
  for (uint32_t o = 0; o < kTileOctets && partial_octets != 0; ++o) {
    if (((partial_octets >> o) & 1) == 0) continue;
    GatherOctet(plan, place, o, true);
    if (plan.batch.shape.value_dim != 0) GatherOctet(plan, place, o, false);
  }
}

void AttentionStrand::GatherOctet(const AttentionPlan& plan, const Place& place, uint32_t octet,
                                  bool is_key) {
  const KvShape& shape = plan.batch.shape;
  const KvPage* pages = plan.batch.sequences[place.item.sequence].pages;
  const Visibility& seen = plan.PlanOf(place.item).seen;
  const uint64_t row_bytes = RowBytes(shape.dtype, is_key ? shape.key_dim : shape.value_dim);
  const uint64_t tile = is_key ? plan.segment.key : plan.segment.value;
  std::byte* const to =
      (is_key ? gathered_keys_ : gathered_values_) + octet * kOctetTokens * row_bytes;
  for (uint32_t i = 0; i < kOctetTokens; ++i) {
    const uint64_t token = place.token + uint64_t{octet} * kOctetTokens + i;
    std::byte* const row = to + i * row_bytes;
    if (!seen.Sees(token)) {
      std::memset(row, 0, row_bytes);
      continue;
    }
    const std::byte* at = SegmentAt(plan.batch.regions, pages[token / shape.page_tokens]) + tile;
    const uint64_t index =
        uint64_t{place.item.kv_head} * shape.page_tokens + token % shape.page_tokens;
    std::memcpy(row, at + index * row_bytes, row_bytes);
  }
  (is_key ? tile_.bytes.keys : tile_.bytes.values)[octet] = to;
}

void AttentionStrand::FillScale(const AttentionPlan& plan, const Place& place, bool is_key) {
  const KvShape& shape = plan.batch.shape;
  const KvPage* pages = plan.batch.sequences[place.item.sequence].pages;
  const Visibility& seen = plan.PlanOf(place.item).seen;
  const uint64_t scales = is_key ? plan.segment.key_scales : plan.segment.value_scales;
  float* const to = is_key ? tile_.key_scales : tile_.value_scales;
  const uint64_t bits = VisibleBits(seen, place.token);
  for (uint32_t i = 0; i < kTileTokens;) {
    const uint64_t token = place.token + i;
    const uint64_t slot = token % shape.page_tokens;
    const uint32_t run =
        static_cast<uint32_t>(std::min<uint64_t>(kTileTokens - i, shape.page_tokens - slot));
    const uint64_t all = run == kTileTokens ? ~uint64_t{0} : (uint64_t{1} << run) - 1;
    const uint64_t run_seen = (bits >> i) & all;
    if (run_seen == 0) {
      std::fill_n(to + i, run, 0.0f);
    } else {
      const std::byte* from =
          SegmentAt(plan.batch.regions, pages[token / shape.page_tokens]) + scales;
      if (shape.scales == KvScales::kPerHead) {
        float scale;
        std::memcpy(&scale, from + place.item.kv_head * sizeof(float), sizeof(scale));
        std::fill_n(to + i, run, scale);
      } else {
        const uint64_t index = uint64_t{place.item.kv_head} * shape.page_tokens + slot;
        std::memcpy(to + i, from + index * sizeof(float), run * sizeof(float));
      }
      for (uint32_t t = 0; run_seen != all && t < run; ++t) {
        if (((run_seen >> t) & 1) == 0) to[i + t] = 0;
      }
    }
    i += run;
  }
}

void AttentionStrand::FillScales(const AttentionPlan& plan, const Place& place) {
  if (!plan.geometry.scaled) return;
  FillScale(plan, place, true);
  if (plan.geometry.values_in_keys) {
    std::copy_n(tile_.key_scales, kTileTokens, tile_.value_scales);
  } else {
    FillScale(plan, place, false);
  }
}

void AttentionStrand::FillVisible(const AttentionPlan& plan, const Place& place) {
  const uint64_t some = VisibleBits(plan.PlanOf(place.item).seen, place.token);
  const uint64_t tokens = some == 0 ? 0 : 64 - static_cast<uint64_t>(__builtin_clzll(some));
  const uint64_t octets = (tokens + kOctetTokens - 1) / kOctetTokens;
  tile_.octets = static_cast<uint32_t>((octets + kOctetStep - 1) / kOctetStep * kOctetStep);
  tile_.all_visible = VisibleBits(all_see_, place.token) == ~uint64_t{0};
  if (tile_.all_visible) return;
  for (uint64_t row = 0; row < rows_; ++row) {
    blocks_[row / kBlockRows].visible[row % kBlockRows] = VisibleBits(row_sees_[row], place.token);
  }
}

void AttentionStrand::BeginItem(const AttentionPlan& plan, const AttentionItem& item) {
  const bool is_packed = has_packed_ && packed_.sequence == item.sequence &&
                         packed_.kv_head == item.kv_head && packed_.row_group == item.row_group;
  if (!is_packed) PackRows(plan, item);
  for (uint32_t b = 0; b < block_count_; ++b) plan.ops->begin(plan.geometry, &blocks_[b]);
}

void AttentionStrand::PackRows(const AttentionPlan& plan, const AttentionItem& item) {
  const AttentionSequence& sequence = plan.batch.sequences[item.sequence];
  rows_ = plan.RowsOf(item);
  block_count_ = static_cast<uint32_t>((rows_ + kBlockRows - 1) / kBlockRows);
  all_see_ = {sequence.kv_tokens, 0, sequence.kv_tokens};
  for (uint64_t i = 0; i < rows_; ++i) {
    const uint64_t row = item.FirstRow() + i;
    const Visibility seen = VisibilityOf(plan.batch, sequence, plan.QueryOf(item.sequence, row));
    row_sees_[i] = seen;
    all_see_.sink_end = std::min(all_see_.sink_end, seen.sink_end);
    all_see_.begin = std::max(all_see_.begin, seen.begin);
    all_see_.end = std::min(all_see_.end, seen.end);
    blocks_[i / kBlockRows].query_rows[i % kBlockRows] =
        plan.QueryRowOf(item.sequence, item.kv_head, row);
  }
  for (uint32_t b = 0; b < block_count_; ++b) {
    const uint64_t rows = rows_ - uint64_t{b} * kBlockRows;
    blocks_[b].rows = static_cast<uint32_t>(std::min<uint64_t>(rows, kBlockRows));
    blocks_[b].is_first = b == 0;
    plan.ops->pack(plan.geometry, &blocks_[b]);
  }
  packed_ = item;
  has_packed_ = true;
}

void AttentionStrand::AttendTile(const AttentionPlan& plan, const Place& place) {
  FillVisible(plan, place);
  FillScales(plan, place);
  for (uint32_t b = 0; b < block_count_; ++b) {
    plan.ops->attend(plan.geometry, tile_, scratch_, &blocks_[b]);
  }
}

void AttentionStrand::FinishItem(AttentionPlan* plan, const AttentionItem& item) {
  const SequencePlan& sequence = plan->PlanOf(item);
  const uint64_t dim = plan->geometry.value_dim;
  for (uint64_t i = 0; i < rows_; ++i) {
    const uint64_t row = item.FirstRow() + i;
    const RowBlock& block = blocks_[i / kBlockRows];
    const uint32_t block_row = static_cast<uint32_t>(i % kBlockRows);
    if (sequence.chunks == 1) {
      plan->ops->finish(plan->geometry, block, block_row,
                        plan->OutputOf(item.sequence, item.kv_head, row),
                        plan->LogSumExpOf(item.sequence, item.kv_head, row));
      continue;
    }
    const uint64_t partial =
        sequence.first_partial +
        (uint64_t{item.kv_head} * sequence.rows + row) * sequence.chunks + item.chunk;
    plan->ops->finish(plan->geometry, block, block_row, &plan->partial_outputs[partial * dim],
                      &plan->partial_log_sum_exps[partial]);
  }
  if (sequence.chunks == 1) return;
  const uint64_t counter = sequence.first_counter +
                           uint64_t{item.kv_head} * sequence.row_groups + item.row_group;
  // Whoever takes the last chunk sees what the others wrote.
  if (plan->chunks_left[counter].fetch_sub(1, std::memory_order_acq_rel) == 1) {
    MergeChunks(*plan, item);
  }
}

void AttentionStrand::MergeChunks(const AttentionPlan& plan, const AttentionItem& item) const {
  const SequencePlan& sequence = plan.PlanOf(item);
  const uint64_t dim = plan.geometry.value_dim;
  PartialResult parts[2 * kChunksMax];
  for (uint64_t i = 0; i < rows_; ++i) {
    const uint64_t row = item.FirstRow() + i;
    const uint64_t first = sequence.first_partial +
                           (uint64_t{item.kv_head} * sequence.rows + row) * sequence.chunks;
    for (uint64_t c = 0; c < sequence.chunks; ++c) {
      parts[c].output = &plan.partial_outputs[(first + c) * dim];
      parts[c].log_sum_exp = &plan.partial_log_sum_exps[first + c];
    }
    MergePartials(parts, sequence.chunks, 1, dim,
                  plan.OutputOf(item.sequence, item.kv_head, row),
                  plan.LogSumExpOf(item.sequence, item.kv_head, row));
  }
}

}  // namespace cairn::kernels
