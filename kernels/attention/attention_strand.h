// AttentionStrand: works off items of an AttentionPlan, with memory of its own.
//
// It knows the tile to come before it computes the one at hand, across items, so that ops can
// prefetch it. Bytes of tokens that nobody sees are never read as numbers: octets that are partly
// unseen, or that cross pages, are gathered beside zeros first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/attention/attention_plan.h"
#include "kernels/attention/tile_ops.h"

namespace cairn::kernels {

// Not thread-safe; strands of one plan may run at once.
class AttentionStrand {
 public:
  // Makes room for the plan. Before RunItems, outside of the threads that run them.
  void Prepare(const AttentionPlan& plan);

  // Items [begin, end).
  void RunItems(AttentionPlan* plan, uint64_t begin, uint64_t end);

 private:
  // Tokens [token, token + kTileTokens) of an item's sequence.
  struct Place {
    AttentionItem item;
    uint64_t token = 0;
    bool begins_item = false;
    bool ends_item = false;
  };
  // Goes through the tiles of items [next_item, end) that some row sees.
  struct Cursor {
    AttentionItem item;
    uint64_t items_left = 0;
    uint64_t token = 0;  // 0 or the next tile of `item` that is seen.
    bool inside = false;
  };

  bool NextPlace(const AttentionPlan& plan, Cursor* cursor, Place* place) const;
  void Locate(const AttentionPlan& plan, const Place& place, TileBytes* bytes,
              uint64_t* partial_octets) const;
  void Gather(const AttentionPlan& plan, const Place& place, uint64_t partial_octets);
  void GatherOctet(const AttentionPlan& plan, const Place& place, uint32_t octet, bool is_key);
  void FillScales(const AttentionPlan& plan, const Place& place);
  void FillScale(const AttentionPlan& plan, const Place& place, bool is_key);
  void FillVisible(const AttentionPlan& plan, const Place& place);
  void BeginItem(const AttentionPlan& plan, const AttentionItem& item);
  void PackRows(const AttentionPlan& plan, const AttentionItem& item);
  void AttendTile(const AttentionPlan& plan, const Place& place);
  void FinishItem(AttentionPlan* plan, const AttentionItem& item);
  void MergeChunks(const AttentionPlan& plan, const AttentionItem& item) const;

  // Of the rows at hand.
  Tile tile_;
  RowBlock blocks_[kItemBlocks];
  Visibility row_sees_[kItemRows];
  Visibility all_see_;  // What every row sees.
  uint64_t rows_ = 0;
  uint32_t block_count_ = 0;
  AttentionItem packed_;  // Whose queries are packed.
  bool has_packed_ = false;

  struct FreeBytes {
    void operator()(std::byte* bytes) const;
  };
  std::unique_ptr<std::byte[], FreeBytes> memory_;
  uint64_t memory_bytes_ = 0;
  std::byte* scratch_ = nullptr;
  std::byte* gathered_keys_ = nullptr;
  std::byte* gathered_values_ = nullptr;
  std::byte* zeros_ = nullptr;
};

}  // namespace cairn::kernels
