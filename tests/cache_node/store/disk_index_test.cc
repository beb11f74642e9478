// Random insertions, moves and removals against maps, with the index's audit after each; one story
// a rule; and its memory and speed at the size that a node may hold.
#include "cache_node/store/disk_index.h"

#include <gmock/gmock.h>

#include <map>
#include <random>

namespace cairn::node {
namespace {

BlockKey KeyOf(uint64_t number) {
  // Digests are spread; so are these.
  std::mt19937_64 random(number);
  BlockKey key;
  for (size_t i = 0; i < key.bytes.size(); i += 8) {
    const uint64_t word = random();
    std::memcpy(key.bytes.data() + i, &word, 8);
  }
  return key;
}

DiskScope ScopeOf(const std::string& tenant, uint8_t number) {
  DiskScope scope;
  scope.tenant = tenant;
  scope.scope_digest.bytes[0] = number;
  return scope;
}

DiskBlock BlockOf(uint64_t number, std::optional<uint64_t> parent = std::nullopt) {
  DiskBlock block;
  block.key = KeyOf(number);
  if (parent.has_value()) block.parent = KeyOf(*parent);
  block.sequence = number;
  block.payload_bytes = 64;
  return block;
}

TEST(DiskIndexTest, ChildrenAreCountedWhicheverComesFirst) {
  DiskIndex index(4, 1 << 20);
  const DiskScopeIndex scope = index.scopes().Of(1, 64, ScopeOf("t", 1));
  const DiskFileIndex file = index.files().Add(10, 4096);
  const DiskHandle child = index.Insert(scope, file, 0, BlockOf(2, 1));
  const DiskHandle parent = index.Insert(scope, file, 1, BlockOf(1));
  EXPECT_EQ(index.At(parent).children, 1u);
  index.Insert(scope, file, 2, BlockOf(3, 1));
  EXPECT_EQ(index.At(parent).children, 2u);
  index.Remove(parent);
  index.Remove(child);
  const DiskHandle again = index.Insert(scope, file, 1, BlockOf(1));
  EXPECT_EQ(index.At(again).children, 1u);
  EXPECT_TRUE(index.Audit().ok()) << index.Audit();
}

TEST(DiskIndexTest, AChildOfThePublicTenantsBlockHoldsNothing) {
  DiskIndex index(4, 1 << 20);
  const DiskScopeIndex scope = index.scopes().Of(1, 64, ScopeOf("t", 1));
  const DiskFileIndex file = index.files().Add(10, 4096);
  DiskBlock child = BlockOf(2, 1);
  child.parent_shared = true;
  const DiskHandle handle = index.Insert(scope, file, 0, child);
  const DiskHandle parent = index.Insert(scope, file, 1, BlockOf(1));
  EXPECT_EQ(index.At(parent).children, 0u);
  EXPECT_EQ(index.ParentOf(handle, 9), (ParentId{9, KeyOf(1)}));
}

TEST(DiskIndexTest, RandomChangesKeepEverythingInAgreement) {
  std::mt19937_64 random(5);
  DiskIndex index(3, 1 << 20);
  std::map<uint64_t, DiskHandle> model;
  std::vector<DiskFileIndex> files;
  std::vector<uint32_t> next_slot;
  for (uint64_t i = 1; i <= 4; ++i) {
    files.push_back(index.files().Add(i, 4096));
    next_slot.push_back(0);
  }
  for (int step = 0; step < 20'000; ++step) {
    const uint64_t number = random() % 200;
    const size_t file = random() % files.size();
    auto known = model.find(number);
    if (known == model.end()) {
      const PartitionIndex partition = static_cast<PartitionIndex>(1 + number % 3);
      const DiskScopeIndex scope =
          index.scopes().Of(partition, 64, ScopeOf("t", static_cast<uint8_t>(number % 5)));
      std::optional<uint64_t> parent;
      if (number >= 3) parent = number - 3;
      model[number] = index.Insert(scope, files[file], next_slot[file]++, BlockOf(number, parent));
      ASSERT_NE(model[number], 0u);
    } else if (random() % 3 == 0) {
      index.Move(known->second, files[file], next_slot[file]++, number);
    } else if (random() % 2 == 0) {
      index.MarkUsed(known->second);
    } else {
      index.Remove(known->second);
      model.erase(known);
    }
    if (step % 50 != 0) continue;
    ASSERT_TRUE(index.Audit().ok()) << index.Audit();
    ASSERT_EQ(index.size(), model.size());
    for (const auto& [n, handle] : model) {
      ASSERT_EQ(index.Find(static_cast<PartitionIndex>(1 + n % 3), KeyOf(n)), handle);
    }
  }
}

TEST(DiskIndexTest, TheFileWithTheSmallestShareInUseLeavesAndAnEmptyOneBefore) {
  DiskIndex index(4, 1 << 20);
  const DiskScopeIndex scope = index.scopes().Of(1, 64, ScopeOf("t", 1));
  for (uint64_t number = 1; number <= 3; ++number) {
    const DiskFileIndex file = index.files().Add(number, 4096);
    index.MarkUsed(index.Insert(scope, file, 0, BlockOf(10 * number)));
    index.Insert(scope, file, 1, BlockOf(10 * number + 1));
  }
  EXPECT_EQ(index.files().At(*index.files().Oldest()).number, 1u);
  index.MarkUsed(index.Find(1, KeyOf(11)));
  EXPECT_EQ(index.files().At(*index.files().Oldest()).number, 2u);
  index.Remove(index.Find(1, KeyOf(30)));
  index.Remove(index.Find(1, KeyOf(31)));
  EXPECT_EQ(index.files().At(*index.files().Oldest()).number, 3u);
}

TEST(DiskIndexTest, OverItsBoundItTakesNoMore) {
  DiskIndex index(1, 3000);
  const DiskScopeIndex scope = index.scopes().Of(1, 64, ScopeOf("t", 1));
  const DiskFileIndex file = index.files().Add(1, 4096);
  uint32_t slot = 0;
  while (index.Insert(scope, file, slot, BlockOf(slot)) != 0) ++slot;
  EXPECT_GT(slot, 15u);
  EXPECT_LE(index.bytes(), 3000u);
  index.Remove(index.Find(1, KeyOf(0)));
  EXPECT_NE(index.Insert(scope, file, slot, BlockOf(slot)), 0u);
}

// The bound that a node's options state holds for what is really allocated, with all nodes in
// chains, as prompts are.
TEST(DiskIndexTest, ABlockTakesAtMost120BytesAllIn) {
  DiskIndex index(64, uint64_t{1} << 30);
  const DiskScopeIndex scope = index.scopes().Of(1, 64, ScopeOf("t", 1));
  constexpr uint64_t kBlocks = 200'000;
  constexpr uint64_t kPerFile = 1000;
  DiskFileIndex file = 0;
  for (uint64_t i = 0; i < kBlocks; ++i) {
    if (i % kPerFile == 0) file = index.files().Add(1 + i / kPerFile, 4096);
    std::optional<uint64_t> parent;
    if (i % 32 != 0) parent = i - 1;
    ASSERT_NE(index.Insert(scope, file, static_cast<uint32_t>(i % kPerFile), BlockOf(i, parent)),
              0u);
  }
  EXPECT_LE(sizeof(DiskNode), 88u);
  EXPECT_LE(index.bytes() / kBlocks, 120u);
}

}  // namespace
}  // namespace cairn::node
