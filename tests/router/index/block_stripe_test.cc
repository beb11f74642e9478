// Entries come and go at random beside a plain map: each is found, and nothing else. Keys that hash
// near each other are among them, as a table in the order of hashes must cope with.
#include "router/index/block_stripe.h"

#include <gmock/gmock.h>

#include <map>
#include <random>

#include "tests/router/numbered_ids.h"

namespace cairn::router {
namespace {

constexpr uint64_t kSeed = 42;

BlockEntry EntryOf(uint32_t number, PartitionIndex partition) {
  return {.key = NumberedKey(number), .partition = partition, .first = HolderSlot(1, 2, 3)};
}

class BlockStripeTest : public ::testing::Test {
 protected:
  BlockEntry* Find(uint32_t number, PartitionIndex partition) {
    const BlockKey key = NumberedKey(number);
    const uint64_t hash = BlockStripe::HashOf(key, kSeed);
    BlockEntry* entry = stripe_.Find(hash, key, nullptr);
    while (entry != nullptr && entry->partition != partition) {
      entry = stripe_.Find(hash, key, entry);
    }
    return entry;
  }

  BlockStripe stripe_{kSeed};
};

TEST_F(BlockStripeTest, AgreesWithAPlainMap) {
  std::mt19937 random(8);
  std::map<std::pair<uint32_t, PartitionIndex>, bool> model;
  for (int step = 0; step < 60'000; ++step) {
    // It fills, empties and fills again.
    const bool filling = step / 10'000 % 2 == 0;
    const auto number = static_cast<uint32_t>(random() % 3000);
    const PartitionIndex partition = random() % 2;
    BlockEntry* const entry = Find(number, partition);
    ASSERT_EQ(entry != nullptr, model.contains({number, partition}));
    if (entry == nullptr && (filling || random() % 8 == 0)) {
      stripe_.Insert(EntryOf(number, partition));
      model[{number, partition}] = true;
    } else if (entry != nullptr && (!filling || random() % 8 == 0)) {
      stripe_.Erase(entry);
      model.erase({number, partition});
    }
    if (step % 7001 == 0) {
      stripe_.EraseIf([](BlockEntry* each) { return each->key.bytes[0] % 3 == 0; });
      std::erase_if(model, [](const auto& each) { return each.first.first % 256 % 3 == 0; });
    }
    ASSERT_EQ(stripe_.size(), model.size());
  }
  for (uint32_t number = 0; number < 3000; ++number) {
    for (const PartitionIndex partition : {0, 1}) {
      ASSERT_EQ(Find(number, partition) != nullptr, model.contains({number, partition}));
    }
  }
}

TEST_F(BlockStripeTest, ManyEntriesOfOneKeyStandAndGo) {
  constexpr PartitionIndex kPartitions = 300;
  for (PartitionIndex partition = 0; partition < kPartitions; ++partition) {
    stripe_.Insert(EntryOf(5, partition));
  }
  for (PartitionIndex partition = 0; partition < kPartitions; ++partition) {
    ASSERT_NE(Find(5, partition), nullptr);
  }
  for (PartitionIndex partition = 0; partition < kPartitions; partition += 2) {
    stripe_.Erase(Find(5, partition));
  }
  for (PartitionIndex partition = 0; partition < kPartitions; ++partition) {
    ASSERT_EQ(Find(5, partition) != nullptr, partition % 2 == 1);
  }
}

}  // namespace
}  // namespace cairn::router
