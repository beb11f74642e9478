// AttentionStrand: works off items of an AttentionPlan, with memory of its own.
//
// For each tile: the keys of all heads, then their values, as they lie in memory. It knows the tile
// to come before it computes the one at hand, across items, so that ops can prefetch. Bytes of
// tokens that nobody sees are never read as numbers: octets that are partly unseen, or that cross
// pages, are gathered beside zeros first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/attention/attention_plan.h"
#include "kernels/attention/item_queue.h"
#include "kernels/attention/tile_ops.h"

namespace cairn::kernels {

// A unit is what is read at once: one tile's keys, or values, of one head.
inline constexpr uint32_t kUnitsAhead = 2;

// Not thread-safe; strands of one plan may run at once.
class AttentionStrand {
 public:
  // Makes room for the plan. Before Run, outside of the threads that run them.
  void Prepare(const AttentionPlan& plan);

  // Works off what it takes from the queue, until that is empty. It takes a run when it begins the
  // last tile of the one before.
  void Run(AttentionPlan* plan, ItemQueue* queue);

 private:
  enum class Part { kKeys, kValues };

  // Tokens [token, token + tile_tokens) of an item's sequence.
  struct Place {
    AttentionItem item;
    uint64_t token = 0;
    uint64_t seen = 0;  // Bit t: some row sees token t of the tile.
    bool begins_item = false;
    bool ends_item = false;
    bool has_gathered = false;  // Some token is seen in an octet that is gathered.
    // Segments of the pages that octets lie in, null for an octet that is gathered or not seen.
    const std::byte* segments[kTileOctets];
    uint32_t slots[kTileOctets];  // Of an octet's first token within its page.
  };
  // Goes through the tiles that some row sees, item by item.
  struct Cursor {
    AttentionItem item;
    uint64_t items_left = 0;
    uint64_t token = 0;  // The next tile of `item`, once inside it.
    bool inside = false;
  };

  bool NextPlace(const AttentionPlan& plan, ItemQueue* queue, Cursor* cursor, Place* place) const;
  void Locate(const AttentionPlan& plan, Place* place) const;
  uint32_t PointAt(const AttentionPlan& plan, const Place& place, uint32_t units_max,
                   const std::byte** octets) const;
  void PointAtUnits(const AttentionPlan& plan, const Place& place, const Place* next);
  void Gather(const AttentionPlan& plan, const Place& place, uint32_t kv_head, Part part,
              const std::byte** octets);
  const std::byte* GatherOctet(const AttentionPlan& plan, const Place& place, uint32_t kv_head,
                               Part part, uint32_t octet);
  void FillScales(const AttentionPlan& plan, const Place& place, uint32_t kv_head, Part part);
  void FillVisible(const AttentionPlan& plan, const Place& place);
  void BeginItem(const AttentionPlan& plan, const AttentionItem& item);
  void PackRows(const AttentionPlan& plan, const AttentionItem& item);
  void PackHead(const AttentionPlan& plan, const AttentionItem& item, uint32_t head);
  void AttendTile(const AttentionPlan& plan, const Place& place, const Place* next);
  void FinishItem(AttentionPlan* plan, const AttentionItem& item);
  void FinishHead(const AttentionPlan& plan, const AttentionItem& item, uint32_t head) const;
  void MergeChunks(const AttentionPlan& plan, const AttentionItem& item, uint32_t kv_head) const;
  const RowBlock& BlockOf(uint32_t head, uint64_t row) const {
    return blocks_[head * head_blocks_ + row / kBlockRows];
  }

  Tile tile_;
  // Octets of the units of the tile at hand, in the order in which they are read, and of the
  // kUnitsAhead units after them.
  std::vector<const std::byte*> units_;
  // Of the rows at hand.
  AttentionItem packed_;  // Whose queries are packed.
  bool has_packed_ = false;
  uint64_t rows_ = 0;
  uint32_t heads_ = 0;
  uint32_t head_blocks_ = 0;
  std::vector<RowBlock> blocks_;  // [head][block]
  Visibility row_sees_[kItemRows];
  Visibility all_see_;  // What every row sees.
  uint64_t visible_[kItemRows];

  struct FreeBytes {
    void operator()(std::byte* bytes) const;
  };
  std::unique_ptr<std::byte[], FreeBytes> memory_;
  uint64_t memory_bytes_ = 0;
  std::byte* block_memory_ = nullptr;
  std::byte* scratch_ = nullptr;
  std::byte* gathered_keys_ = nullptr;
  std::byte* gathered_values_ = nullptr;
  std::byte* zeros_ = nullptr;
};

}  // namespace cairn::kernels
