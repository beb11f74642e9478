#include "kernels/attention/attention_strand.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "kernels/attention/merge.h"

namespace cairn::kernels {
namespace {

constexpr std::align_val_t kAlign{64};
constexpr uint64_t kOctetMask = (uint64_t{1} << kOctetTokens) - 1;

uint64_t PadToLine(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

// Bits [begin, end) of those that stand for tokens [first, first + count).
uint64_t RangeBits(uint64_t begin, uint64_t end, uint64_t first, uint64_t count) {
  const uint64_t low = begin > first ? begin - first : 0;
  const uint64_t high = end > first ? std::min(end - first, count) : 0;
  if (low >= high) return 0;
  const uint64_t upto = high == 64 ? ~uint64_t{0} : (uint64_t{1} << high) - 1;
  return upto & ~((uint64_t{1} << low) - 1);
}

uint64_t VisibleBits(const Visibility& seen, uint64_t first, uint64_t count) {
  return RangeBits(0, seen.sink_end, first, count) | RangeBits(seen.begin, seen.end, first, count);
}

// The next tile of `count` tokens at or after `token` with a token that is seen, or `end`.
uint64_t NextSeenTile(const Visibility& seen, uint64_t token, uint64_t count, uint64_t end) {
  if (token < seen.sink_end) return token;
  if (seen.begin >= seen.end) return end;
  const uint64_t next = std::max(token, seen.begin / count * count);
  return next < std::min(end, seen.end) ? next : end;
}

uint64_t BlockBytes(const TileGeometry& geometry, uint32_t rows) {
  return PadToLine(QueryBytes(geometry, rows)) + PadToLine(ScoreBytes(rows)) +
         PadToLine(OutputBytes(geometry, rows));
}

}  // namespace

void AttentionStrand::FreeBytes::operator()(std::byte* bytes) const {
  ::operator delete[](bytes, kAlign);
}

void AttentionStrand::Prepare(const AttentionPlan& plan) {
  const TileGeometry& geometry = plan.geometry;
  const uint64_t row_bytes = std::max(RowBytes(geometry.dtype, geometry.key_dim),
                                      RowBytes(geometry.dtype, geometry.value_dim));
  const uint64_t tile_bytes = PadToLine(row_bytes * kTileTokens);
  const uint64_t scratch = PadToLine(TileScratchBytes(geometry));
  const uint64_t head_blocks = (plan.rows_max + kBlockRows - 1) / kBlockRows;
  const uint32_t block_rows = static_cast<uint32_t>(std::min<uint64_t>(plan.rows_max, kBlockRows));
  const uint64_t blocks = plan.item_heads * head_blocks;
  const uint64_t block_bytes = blocks * BlockBytes(geometry, block_rows);
  const uint64_t bytes = block_bytes + scratch + 3 * tile_bytes;
  has_packed_ = false;
  units_.resize((2 * uint64_t{plan.item_heads} + kUnitsAhead) * kTileOctets);
  if (blocks > blocks_.size()) blocks_.resize(blocks);
  if (bytes > memory_bytes_) {
    memory_.reset();
    memory_.reset(static_cast<std::byte*>(::operator new[](bytes, kAlign)));
    memory_bytes_ = bytes;
  }
  block_memory_ = memory_.get();
  scratch_ = block_memory_ + block_bytes;
  gathered_keys_ = scratch_ + scratch;
  gathered_values_ = gathered_keys_ + tile_bytes;
  zeros_ = gathered_values_ + tile_bytes;
  std::memset(zeros_, 0, tile_bytes);
}

void AttentionStrand::Run(AttentionPlan* plan, ItemQueue* queue) {
  Cursor cursor;
  Place place, next;
  if (!NextPlace(*plan, queue, &cursor, &place)) return;
  for (bool more = true; more; place = next) {
    more = NextPlace(*plan, queue, &cursor, &next);
    if (place.begins_item) BeginItem(*plan, place.item);
    AttendTile(*plan, place, more ? &next : nullptr);
    if (place.ends_item) FinishItem(plan, place.item);
  }
}

bool AttentionStrand::NextPlace(const AttentionPlan& plan, ItemQueue* queue, Cursor* cursor,
                                Place* place) const {
  if (cursor->items_left == 0) {
    uint64_t begin = 0;
    cursor->items_left = queue->Take(&begin);
    if (cursor->items_left == 0) return false;
    cursor->item = plan.ItemAt(begin);
  }
  const SequencePlan& sequence = plan.PlanOf(cursor->item);
  const uint64_t begin = sequence.ChunkBegin(cursor->item.chunk);
  const uint64_t end = begin + sequence.chunk_tokens;
  if (!cursor->inside) cursor->token = NextSeenTile(sequence.seen, begin, plan.tile_tokens, end);
  place->item = cursor->item;
  place->token = cursor->token;
  place->seen = VisibleBits(sequence.seen, cursor->token, plan.tile_tokens);
  place->begins_item = !cursor->inside;
  cursor->token =
      NextSeenTile(sequence.seen, cursor->token + plan.tile_tokens, plan.tile_tokens, end);
  place->ends_item = cursor->token >= end;
  cursor->inside = !place->ends_item;
  Locate(plan, place);
  if (place->ends_item && --cursor->items_left > 0) plan.Advance(&cursor->item);
  return true;
}

void AttentionStrand::Locate(const AttentionPlan& plan, Place* place) const {
  const uint64_t page_tokens = plan.batch.shape.page_tokens;
  const KvPage* pages = plan.batch.sequences[place->item.sequence].pages;
  place->has_gathered = false;
  for (uint32_t o = 0; o < plan.tile_tokens / kOctetTokens; ++o) {
    const uint64_t token = place->token + uint64_t{o} * kOctetTokens;
    const uint64_t slot = token % page_tokens;
    place->segments[o] = nullptr;
    place->slots[o] = static_cast<uint32_t>(slot);
    const uint64_t seen = (place->seen >> (o * kOctetTokens)) & kOctetMask;
    if (seen != kOctetMask || slot + kOctetTokens > page_tokens) {
      place->has_gathered = place->has_gathered || seen != 0;
      continue;
    }
    const std::byte* at = SegmentAt(plan.batch.regions, pages[token / page_tokens]);
    place->segments[o] = at;
    if (!plan.geometry.scaled || slot % kBlockRows != 0) continue;
    // Scales are short runs far from the tiles, which nothing else would prefetch.
    const bool by_head = plan.batch.shape.scales == KvScales::kPerHead;
    const uint64_t head_bytes = (by_head ? 1 : page_tokens) * sizeof(float);
    const uint64_t from = plan.FirstHead(place->item) * head_bytes;
    const uint64_t bytes = plan.HeadsOf(place->item) * head_bytes;
    for (uint64_t i = from / 64 * 64; i < from + bytes; i += 64) {
      __builtin_prefetch(at + plan.segment.key_scales + i);
      __builtin_prefetch(at + plan.segment.value_scales + i);
    }
  }
}

// The first units of a place, at most `units_max`: the keys of each head, then the values of each.
// Returns how many.
uint32_t AttentionStrand::PointAt(const AttentionPlan& plan, const Place& place, uint32_t units_max,
                                  const std::byte** octets) const {
  const KvShape& shape = plan.batch.shape;
  const uint64_t count = plan.tile_tokens / kOctetTokens;
  const uint32_t heads = plan.HeadsOf(place.item);
  const uint32_t parts = plan.geometry.values_in_keys ? 1 : 2;
  uint32_t units = 0;
  for (uint32_t part = 0; part < parts; ++part) {
    const uint64_t row_bytes = RowBytes(shape.dtype, part == 0 ? shape.key_dim : shape.value_dim);
    const uint64_t head_bytes = shape.page_tokens * row_bytes;
    const uint64_t tile = (part == 0 ? plan.segment.key : plan.segment.value) +
                          plan.FirstHead(place.item) * head_bytes;
    const uint32_t part_heads = std::min(heads, units_max - units);
    for (uint64_t o = 0; o < count; ++o) {
      const std::byte* const segment = place.segments[o];
      const bool is_whole = segment != nullptr;
      const std::byte* at = is_whole ? segment + tile + place.slots[o] * row_bytes : zeros_;
      const uint64_t step = is_whole ? head_bytes : 0;
      for (uint32_t h = 0; h < part_heads; ++h, at += step) octets[(units + h) * count + o] = at;
    }
    units += part_heads;
  }
  return units;
}

// All units of the place, and those after them, which are only prefetched.
void AttentionStrand::PointAtUnits(const AttentionPlan& plan, const Place& place,
                                   const Place* next) {
  const uint64_t octets = plan.tile_tokens / kOctetTokens;
  const uint32_t own = PointAt(plan, place, UINT32_MAX, units_.data());
  const uint32_t wanted = own + kUnitsAhead;
  uint32_t units = own;
  if (next != nullptr) units += PointAt(plan, *next, kUnitsAhead, &units_[own * octets]);
  for (; units < wanted; ++units) {
    std::copy_n(&units_[(units - 1) * octets], octets, &units_[units * octets]);
  }
}

void AttentionStrand::Gather(const AttentionPlan& plan, const Place& place, uint32_t kv_head,
                             Part part, const std::byte** octets) {
  if (!place.has_gathered) return;
  for (uint32_t o = 0; o < plan.tile_tokens / kOctetTokens; ++o) {
    const bool is_seen = ((place.seen >> (o * kOctetTokens)) & kOctetMask) != 0;
    if (!is_seen || place.segments[o] != nullptr) continue;
    octets[o] = GatherOctet(plan, place, kv_head, part, o);
  }
}

const std::byte* AttentionStrand::GatherOctet(const AttentionPlan& plan, const Place& place,
                                              uint32_t kv_head, Part part, uint32_t octet) {
  const KvShape& shape = plan.batch.shape;
  const KvPage* pages = plan.batch.sequences[place.item.sequence].pages;
  const bool is_keys = part == Part::kKeys;
  const uint64_t row_bytes = RowBytes(shape.dtype, is_keys ? shape.key_dim : shape.value_dim);
  const uint64_t tile = is_keys ? plan.segment.key : plan.segment.value;
  std::byte* const to =
      (is_keys ? gathered_keys_ : gathered_values_) + octet * kOctetTokens * row_bytes;
  for (uint32_t i = 0; i < kOctetTokens; ++i) {
    const uint32_t t = octet * kOctetTokens + i;
    std::byte* const row = to + i * row_bytes;
    if (((place.seen >> t) & 1) == 0) {
      std::memset(row, 0, row_bytes);
      continue;
    }
    const uint64_t token = place.token + t;
    const std::byte* at = SegmentAt(plan.batch.regions, pages[token / shape.page_tokens]) + tile;
    const uint64_t index = uint64_t{kv_head} * shape.page_tokens + token % shape.page_tokens;
    std::memcpy(row, at + index * row_bytes, row_bytes);
  }
  return to;
}

void AttentionStrand::FillScales(const AttentionPlan& plan, const Place& place, uint32_t kv_head,
                                 Part part) {
  const KvShape& shape = plan.batch.shape;
  const KvPage* pages = plan.batch.sequences[place.item.sequence].pages;
  const bool is_keys = part == Part::kKeys;
  const uint64_t scales = is_keys ? plan.segment.key_scales : plan.segment.value_scales;
  float* const to = is_keys ? tile_.key_scales : tile_.value_scales;
  const bool by_head = shape.scales == KvScales::kPerHead;
  for (uint32_t o = 0; o < plan.tile_tokens / kOctetTokens; ++o) {
    float* const octet = to + o * kOctetTokens;
    const uint64_t first_row = uint64_t{kv_head} * shape.page_tokens + place.slots[o];
    if (place.segments[o] != nullptr && !by_head) {
      std::memcpy(octet, place.segments[o] + scales + first_row * sizeof(float),
                  kOctetTokens * sizeof(float));
      continue;
    }
    for (uint32_t i = 0; i < kOctetTokens; ++i) {
      const uint32_t t = o * kOctetTokens + i;
      octet[i] = 0;
      if (((place.seen >> t) & 1) == 0) continue;
      const uint64_t token = place.token + t;
      const std::byte* at = SegmentAt(plan.batch.regions, pages[token / shape.page_tokens]);
      const uint64_t row = uint64_t{kv_head} * shape.page_tokens + token % shape.page_tokens;
      std::memcpy(&octet[i], at + scales + (by_head ? kv_head : row) * sizeof(float),
                  sizeof(float));
      if (place.segments[o] == nullptr) continue;
      std::fill_n(octet + 1, kOctetTokens - 1, octet[0]);  // A whole octet of one head: one scale.
      break;
    }
  }
}

void AttentionStrand::FillVisible(const AttentionPlan& plan, const Place& place) {
  const uint64_t tokens = 64 - static_cast<uint64_t>(__builtin_clzll(place.seen));
  const uint64_t octets = (tokens + kOctetTokens - 1) / kOctetTokens;
  tile_.octets = static_cast<uint32_t>((octets + kOctetStep - 1) / kOctetStep * kOctetStep);
  tile_.all_visible = VisibleBits(all_see_, place.token, plan.tile_tokens) ==
                      RangeBits(0, plan.tile_tokens, 0, plan.tile_tokens);
  if (tile_.all_visible) return;
  for (uint64_t row = 0; row < rows_; ++row) {
    visible_[row] = VisibleBits(row_sees_[row], place.token, plan.tile_tokens);
  }
}

void AttentionStrand::BeginItem(const AttentionPlan& plan, const AttentionItem& item) {
  const bool is_packed = has_packed_ && packed_.sequence == item.sequence &&
                         packed_.head_group == item.head_group &&
                         packed_.row_group == item.row_group;
  if (!is_packed) PackRows(plan, item);
  for (uint32_t b = 0; b < heads_ * head_blocks_; ++b) {
    plan.ops->begin(plan.geometry, &blocks_[b]);
  }
}

void AttentionStrand::PackRows(const AttentionPlan& plan, const AttentionItem& item) {
  const AttentionSequence& sequence = plan.batch.sequences[item.sequence];
  rows_ = plan.RowsOf(item);
  heads_ = plan.HeadsOf(item);
  head_blocks_ = static_cast<uint32_t>((rows_ + kBlockRows - 1) / kBlockRows);
  all_see_ = {sequence.kv_tokens, 0, sequence.kv_tokens};
  for (uint64_t i = 0; i < rows_; ++i) {
    const AttentionQuery& query = plan.QueryOf(item.sequence, item.FirstRow() + i);
    row_sees_[i] = VisibilityOf(plan.batch, sequence, query);
    all_see_.sink_end = std::min(all_see_.sink_end, row_sees_[i].sink_end);
    all_see_.begin = std::max(all_see_.begin, row_sees_[i].begin);
    all_see_.end = std::min(all_see_.end, row_sees_[i].end);
  }
  for (uint32_t h = 0; h < heads_; ++h) PackHead(plan, item, h);
  packed_ = item;
  has_packed_ = true;
}

void AttentionStrand::PackHead(const AttentionPlan& plan, const AttentionItem& item,
                               uint32_t head) {
  const TileGeometry& geometry = plan.geometry;
  const uint32_t block_rows = static_cast<uint32_t>(std::min<uint64_t>(rows_, kBlockRows));
  const uint64_t block_bytes = BlockBytes(geometry, block_rows);
  for (uint32_t b = 0; b < head_blocks_; ++b) {
    const uint64_t first = uint64_t{b} * kBlockRows;
    const uint32_t index = head * head_blocks_ + b;
    RowBlock& block = blocks_[index];
    block.rows = static_cast<uint32_t>(std::min<uint64_t>(rows_ - first, kBlockRows));
    block.is_first = b == 0;
    block.visible = visible_ + first;
    block.queries = block_memory_ + index * block_bytes;
    std::byte* const scores = block.queries + PadToLine(QueryBytes(geometry, block_rows));
    block.scores = reinterpret_cast<float*>(scores);
    block.output = reinterpret_cast<float*>(scores + PadToLine(ScoreBytes(block_rows)));
    for (uint32_t r = 0; r < block.rows; ++r) {
      block.query_rows[r] =
          plan.QueryRowOf(item.sequence, plan.FirstHead(item) + head, item.FirstRow() + first + r);
    }
    plan.ops->pack(geometry, &block);
  }
}

void AttentionStrand::AttendTile(const AttentionPlan& plan, const Place& place, const Place* next) {
  const TileGeometry& geometry = plan.geometry;
  const uint32_t first_head = plan.FirstHead(place.item);
  const uint64_t octets = plan.tile_tokens / kOctetTokens;
  const bool has_values = !geometry.values_in_keys;
  FillVisible(plan, place);
  PointAtUnits(plan, place, next);
  for (uint32_t h = 0; h < heads_; ++h) {
    const std::byte** const keys = &units_[h * octets];
    Gather(plan, place, first_head + h, Part::kKeys, keys);
    tile_.keys = keys;
    RowBlock* const blocks = &blocks_[h * head_blocks_];
    for (uint32_t b = 0; b < head_blocks_; ++b) {
      plan.ops->score(geometry, tile_, scratch_, &blocks[b]);
    }
  }
  for (uint32_t h = 0; h < heads_; ++h) {
    if (has_values) {
      const std::byte** const values = &units_[(heads_ + h) * octets];
      Gather(plan, place, first_head + h, Part::kValues, values);
      tile_.values = values;
    }
    if (geometry.scaled) {
      FillScales(plan, place, first_head + h, Part::kKeys);
      if (has_values) FillScales(plan, place, first_head + h, Part::kValues);
      if (!has_values) std::copy_n(tile_.key_scales, kTileTokens, tile_.value_scales);
    }
    RowBlock* const blocks = &blocks_[h * head_blocks_];
    for (uint32_t b = 0; b < head_blocks_; ++b) {
      plan.ops->add(geometry, tile_, scratch_, &blocks[b]);
    }
  }
}

void AttentionStrand::FinishItem(AttentionPlan* plan, const AttentionItem& item) {
  for (uint32_t h = 0; h < heads_; ++h) FinishHead(*plan, item, h);
  const SequencePlan& sequence = plan->PlanOf(item);
  if (sequence.chunks == 1) return;
  const uint64_t counter =
      sequence.first_counter + item.head_group * sequence.row_groups + item.row_group;
  // Whoever takes the last chunk sees what the others wrote.
  if (plan->chunks_left[counter].fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  for (uint32_t h = 0; h < heads_; ++h) MergeChunks(*plan, item, plan->FirstHead(item) + h);
}

void AttentionStrand::FinishHead(const AttentionPlan& plan, const AttentionItem& item,
                                 uint32_t head) const {
  const uint32_t kv_head = plan.FirstHead(item) + head;
  const uint64_t dim = plan.geometry.value_dim;
  float* const partial_outputs = plan.partial_outputs.get();
  for (uint64_t i = 0; i < rows_; ++i) {
    const uint64_t row = item.FirstRow() + i;
    float* output = plan.OutputOf(item.sequence, kv_head, row);
    float* log_sum_exp = plan.LogSumExpOf(item.sequence, kv_head, row);
    if (plan.PlanOf(item).chunks > 1) {
      const uint64_t partial = plan.PartialOf(item, kv_head, row) + item.chunk;
      output = partial_outputs + partial * dim;
      log_sum_exp = plan.partial_log_sum_exps.get() + partial;
    }
    plan.ops->finish(plan.geometry, BlockOf(head, i), static_cast<uint32_t>(i % kBlockRows), output,
                     log_sum_exp);
  }
}

void AttentionStrand::MergeChunks(const AttentionPlan& plan, const AttentionItem& item,
                                  uint32_t kv_head) const {
  const uint64_t chunks = plan.PlanOf(item).chunks;
  const uint64_t dim = plan.geometry.value_dim;
  PartialResult parts[2 * kChunksMax];
  for (uint64_t i = 0; i < rows_; ++i) {
    const uint64_t row = item.FirstRow() + i;
    const uint64_t first = plan.PartialOf(item, kv_head, row);
    for (uint64_t c = 0; c < chunks; ++c) {
      parts[c].output = plan.partial_outputs.get() + (first + c) * dim;
      parts[c].log_sum_exp = plan.partial_log_sum_exps.get() + first + c;
    }
    MergePartials(parts, chunks, 1, dim, plan.OutputOf(item.sequence, kv_head, row),
                  plan.LogSumExpOf(item.sequence, kv_head, row));
  }
}

}  // namespace cairn::kernels
