// Arrays of all sizes are made, resized and freed at random beside a plain map of what was written
// to them; none may be written over, and what is freed comes back.
#include "router/index/slot_pool.h"

#include <gmock/gmock.h>

#include <map>
#include <random>
#include <vector>

namespace cairn::router {
namespace {

TEST(HolderSlotTest, KeepsItsFieldsApart) {
  for (const HolderIndex holder : std::vector<HolderIndex>{0, 1, 2047, 4095}) {
    for (const uint8_t tiers : std::vector<uint8_t>{1, 2, 7, 0x10, 0x80, 0xff}) {
      for (const uint32_t epoch : {0u, 1u, 0xfffu, 0x1000u, HolderSlot::kEpochMax}) {
        const HolderSlot slot(holder, tiers, epoch);
        ASSERT_EQ(slot.holder(), holder);
        ASSERT_EQ(slot.tiers(), tiers);
        ASSERT_EQ(slot.epoch(), epoch);
      }
    }
  }
  EXPECT_EQ(HolderSlot().tiers(), 0);
}

class SlotPoolTest : public ::testing::Test {
 protected:
  using Array = std::vector<uint32_t>;  // Epochs, which stand for contents.

  void Write(SlotPool::Handle handle, const Array& array) {
    for (size_t i = 0; i < array.size(); ++i) {
      pool_.At(handle, array.size())[i] = HolderSlot(7, 1, array[i]);
    }
  }
  void ExpectHas(SlotPool::Handle handle, const Array& array) {
    for (size_t i = 0; i < array.size(); ++i) {
      ASSERT_EQ(pool_.At(handle, array.size())[i].epoch(), array[i]);
    }
  }

  SlotPool pool_;
};

TEST_F(SlotPoolTest, ArraysOfAllSizesKeepWhatIsInThem) {
  std::mt19937 random(3);
  const auto count_below = [&](size_t most) {
    return size_t{1} + random() % (random() % 4 == 0 ? most : 12);
  };
  struct Kept {
    SlotPool::Handle handle;
    Array array;
  };
  std::vector<Kept> kept;
  for (int step = 0; step < 20'000; ++step) {
    if (kept.size() < 200 && random() % 3 != 0) {
      Array array(count_below(SlotPool::kCountMax));
      for (uint32_t& epoch : array) epoch = random() & HolderSlot::kEpochMax;
      kept.push_back({pool_.Allocate(array.size()), array});
      Write(kept.back().handle, array);
      continue;
    }
    if (kept.empty()) continue;
    std::swap(kept[random() % kept.size()], kept.back());
    Kept& some = kept.back();
    ExpectHas(some.handle, some.array);
    if (random() % 2 == 0) {
      pool_.Free(some.handle, some.array.size());
      kept.pop_back();
      continue;
    }
    const size_t count = count_below(SlotPool::kCountMax);
    some.handle = pool_.Resize(some.handle, some.array.size(), count);
    some.array.resize(count, 5);
    Write(some.handle, some.array);
  }
  for (const Kept& some : kept) ExpectHas(some.handle, some.array);
}

TEST_F(SlotPoolTest, OneMoreTakesUnderAThirdMoreThanItNeeds) {
  // Neighbours of one chunk show how far apart arrays of a count are.
  for (size_t count = 1; count <= 160; ++count) {
    SlotPool pool;
    const SlotPool::Handle first = pool.Allocate(count);
    const SlotPool::Handle second = pool.Allocate(count);
    const auto room = static_cast<size_t>(pool.At(second, count) - pool.At(first, count));
    ASSERT_GE(room, count);
    ASSERT_LE(room * sizeof(HolderSlot), count * 8) << count;
  }
}

}  // namespace
}  // namespace cairn::router
