// Random allocations, frees and remakes against a model that knows every slot held and what was
// written into it: no two holders ever share a byte, and a refusal is always right.

#include <gmock/gmock.h>

#include <map>
#include <random>
#include <set>
#include <tuple>

#include "cache_node/tiers/host_memory.h"

namespace cairn::node {
namespace {

class RandomPool {
 public:
  explicit RandomPool(uint64_t seed)
      : random_(seed), memory_(*HostMemory::Create(16 * MemorySegment::PageBytes())) {
    for (uint32_t i = 0; i < memory_->segment_count(); ++i) ids_.insert(memory_->Info(i).id);
    for (TenantIndex tenant : {1u, 2u, 3u}) {
      for (uint64_t slots : {1, 3, 16}) {
        classes_.push_back({tenant, memory_->slot_bytes_max() / slots / 64 * 64});
      }
    }
  }

  void Step() {
    const uint64_t dice = Below(100);
    if (dice < 55) {
      Allocate();
    } else if (dice < 95) {
      FreeOne();
    } else {
      RemakeOne();
    }
    uint64_t used_bytes = 0;
    for (const auto& [id, held] : held_) used_bytes += held.slot_class.slot_bytes;
    ASSERT_EQ(memory_->used_bytes(), used_bytes);
  }

  size_t allocated() const { return allocated_; }
  size_t refused() const { return refused_; }
  size_t remade() const { return remade_; }

 private:
  using SlotId = std::pair<uint32_t, uint32_t>;
  struct Held {
    SlotClass slot_class;
    uint8_t pattern = 0;
    uint64_t generation = 0;
  };

  uint64_t Below(uint64_t limit) {
    return std::uniform_int_distribution<uint64_t>(0, limit - 1)(random_);
  }

  bool HasRoomFor(const SlotClass& slot_class) const {
    for (uint32_t i = 0; i < memory_->segment_count(); ++i) {
      const HostMemory::SegmentInfo info = memory_->Info(i);
      if (info.in_remake || info.missing) continue;
      if (info.slots == 0) return true;
      if (info.slot_class == slot_class && info.slots_used < info.slots) return true;
    }
    return false;
  }

  void Allocate() {
    const SlotClass slot_class = classes_[Below(classes_.size())];
    const bool has_room = HasRoomFor(slot_class);
    const std::optional<SlotRef> slot = memory_->Allocate(slot_class);
    ASSERT_EQ(slot.has_value(), has_room);
    if (!slot.has_value()) {
      ++refused_;
      return;
    }
    ++allocated_;
    ASSERT_EQ(memory_->Info(slot->segment).slot_class, slot_class);
    Held held{slot_class, static_cast<uint8_t>(Below(256)), memory_->Generation(*slot)};
    auto [it, added] = held_.emplace(SlotId{slot->segment, slot->slot}, held);
    ASSERT_TRUE(added);
    // A generation that a holder saw never comes again for another holder of the same place.
    ASSERT_TRUE(seen_.emplace(slot->segment, slot->slot, held.generation).second);
    for (uint8_t& byte : memory_->Bytes(*slot)) byte = held.pattern;
  }

  void FreeOne() {
    if (held_.empty()) return;
    auto it = std::next(held_.begin(), static_cast<ptrdiff_t>(Below(held_.size())));
    const SlotRef slot{it->first.first, it->first.second};
    for (uint8_t byte : memory_->Bytes(slot)) ASSERT_EQ(byte, it->second.pattern);
    ASSERT_EQ(memory_->Generation(slot), it->second.generation);
    memory_->Free(slot);
    ASSERT_GT(memory_->Generation(slot), it->second.generation);
    held_.erase(it);
  }

  // Each third one fails to get memory and is tried again when chance comes back to it.
  void RemakeOne() {
    const auto index = static_cast<uint32_t>(Below(memory_->segment_count()));
    if (memory_->Info(index).slots_used > 0) return;
    memory_->BeginRemake(index).reset();
    if (Below(3) == 0) return memory_->FinishRemake(index, nullptr);
    memory_->FinishRemake(index, *HostMemory::MakeSegment(memory_->SegmentBytes(index)));
    ASSERT_TRUE(ids_.insert(memory_->Info(index).id).second);
    ++remade_;
  }

  std::mt19937_64 random_;
  std::unique_ptr<HostMemory> memory_;
  std::vector<SlotClass> classes_;
  std::map<SlotId, Held> held_;
  std::set<std::tuple<uint32_t, uint32_t, uint64_t>> seen_;
  std::set<uint64_t> ids_;
  size_t allocated_ = 0;
  size_t refused_ = 0;
  size_t remade_ = 0;
};

TEST(HostMemoryRandomTest, HoldersNeverShareBytesAndRefusalsAreRight) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    RandomPool pool(seed);
    for (int step = 0; step < 5000 && !::testing::Test::HasFailure(); ++step) pool.Step();
    // The run was worth something.
    EXPECT_GT(pool.allocated(), 500u);
    EXPECT_GT(pool.refused(), 100u);
    EXPECT_GT(pool.remade(), 10u);
  }
}

}  // namespace
}  // namespace cairn::node
