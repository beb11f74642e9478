// Random allocations, frees and changes of class against a model that knows every slot held and
// what was written into it, over each tier that has slots: no two holders ever share a byte, and a
// refusal is always right.

#include <gmock/gmock.h>

#include <map>
#include <random>
#include <set>
#include <tuple>

#include "tests/cache_node/tiers/slot_pools.h"

namespace cairn::node {
namespace {

template <typename Pool>
class RandomPool {
 public:
  explicit RandomPool(uint64_t seed) : random_(seed), memory_(&pool_.memory()) {
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
      pool_.RemakeOne(&random_);
    }
    uint64_t used_bytes = 0;
    for (const auto& [id, held] : held_) used_bytes += held.slot_class.slot_bytes;
    ASSERT_EQ(memory_->used_bytes(), used_bytes);
  }

  size_t allocated() const { return allocated_; }
  size_t refused() const { return refused_; }
  const Pool& pool() const { return pool_; }

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
      if (pool_.IsFresh(i)) return true;
      const auto info = memory_->Info(i);
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
    for (uint8_t& byte : pool_.Bytes(*slot)) byte = held.pattern;
  }

  void FreeOne() {
    if (held_.empty()) return;
    auto it = std::next(held_.begin(), static_cast<ptrdiff_t>(Below(held_.size())));
    const SlotRef slot{it->first.first, it->first.second};
    for (uint8_t byte : pool_.Bytes(slot)) ASSERT_EQ(byte, it->second.pattern);
    ASSERT_EQ(memory_->Generation(slot), it->second.generation);
    memory_->Free(slot);
    ASSERT_GT(memory_->Generation(slot), it->second.generation);
    held_.erase(it);
  }

  std::mt19937_64 random_;
  Pool pool_;
  typename Pool::Memory* const memory_;
  std::vector<SlotClass> classes_;
  std::map<SlotId, Held> held_;
  std::set<std::tuple<uint32_t, uint32_t, uint64_t>> seen_;
  size_t allocated_ = 0;
  size_t refused_ = 0;
};

template <typename Pool>
class SlotPoolRandomTest : public ::testing::Test {};
TYPED_TEST_SUITE(SlotPoolRandomTest, SlotPools);

TYPED_TEST(SlotPoolRandomTest, HoldersNeverShareBytesAndRefusalsAreRight) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    RandomPool<TypeParam> pool(seed);
    for (int step = 0; step < 5000 && !::testing::Test::HasFailure(); ++step) pool.Step();
    // The run was worth something.
    EXPECT_GT(pool.allocated(), 500u);
    EXPECT_GT(pool.refused(), 100u);
    EXPECT_GE(pool.pool().remade(), TypeParam::kRemadeAtLeast);
  }
}

}  // namespace
}  // namespace cairn::node
