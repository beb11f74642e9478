// What a policy is told and asked, call by call, in small stories.

#include "tests/bench/eviction/simulated_store.h"

#include <gmock/gmock.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cache_node/store/policies/lru_policy.h"
#include "tests/bench/eviction/fake_trace.h"

namespace cairn::bench {
namespace {

using node::BlockHandle;
using node::UseStamp;
using ::testing::ElementsAre;

// An LRU that writes down what it is told, and declines newcomers from a depth on.
class RecordingPolicy final : public node::EvictionPolicy {
 public:
  RecordingPolicy(std::vector<std::string>* calls, uint32_t declined_depth, bool when_full)
      : calls_(calls), declined_depth_(declined_depth), when_full_(when_full) {}

  absl::string_view name() const override { return "recording"; }
  void Missed(const BlockTraits& block, UseStamp stamp) override {
    Note("missed", block.depth, stamp);
  }
  bool Admits(const BlockTraits& newcomer, UseStamp, const Victim* displaced) override {
    return newcomer.depth < declined_depth_ || (displaced != nullptr) != when_full_;
  }
  void Inserted(BlockHandle block, const BlockTraits& traits, UseStamp stamp) override {
    Note(absl::StrCat("inserted ", traits.prompt_hits, "/", traits.prompt_blocks), block, stamp);
    lru_.Inserted(block, traits, stamp);
  }
  void Used(BlockHandle block, UseStamp stamp) override {
    Note("used", block, stamp);
    lru_.Used(block, stamp);
  }
  void MayGo(BlockHandle block) override {
    calls_->push_back(absl::StrCat("may go ", block));
    lru_.MayGo(block);
  }
  void MustStay(BlockHandle block) override {
    calls_->push_back(absl::StrCat("must stay ", block));
    lru_.MustStay(block);
  }
  void Orphaned(BlockHandle, bool) override {}
  void PriorityChanged(BlockHandle, uint8_t) override {}
  void Removed(BlockHandle block) override {
    calls_->push_back(absl::StrCat("removed ", block));
    lru_.Removed(block);
  }
  std::optional<Victim> NextVictim() override { return lru_.NextVictim(); }

 private:
  void Note(absl::string_view what, uint32_t which, UseStamp stamp) {
    calls_->push_back(absl::StrCat(what, " ", which, " @", stamp));
  }

  std::vector<std::string>* const calls_;
  const uint32_t declined_depth_;
  const bool when_full_;
  node::LruPolicy lru_;
};

class SimulatedStoreTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kNothing = UINT32_MAX;

  // Serves the prompts; what the policy was told for the last one.
  std::vector<std::string> Serve(std::vector<FakeTrace::Prompt> prompts, uint32_t capacity,
                                 uint32_t declined_depth = kNothing, bool when_full = true) {
    FakeTrace reader(std::move(prompts));
    trace_ = *BlockTrace::Read(&reader, {});
    store_.emplace(&trace_, capacity,
                   std::make_unique<RecordingPolicy>(&calls_, declined_depth, when_full));
    for (const BlockTrace::Request& request : trace_.requests()) {
      calls_.clear();
      hits_ = store_->Serve(request);
    }
    return calls_;
  }

  BlockTrace trace_;
  std::vector<std::string> calls_;
  std::optional<SimulatedStore> store_;
  uint32_t hits_ = 0;
};

TEST_F(SimulatedStoreTest, ANewPromptIsMissedThenInsertedAndItsLastBlockMayGo) {
  EXPECT_THAT(Serve({{{9}}, {{1, 2}}}, 10),
              ElementsAre("missed 0 @2", "missed 1 @2", "inserted 0/2 1 @2", "inserted 0/2 2 @2",
                          "may go 2"));
}

TEST_F(SimulatedStoreTest, TheFirstPromptOfAllIsNotMissedSinceItsClassBeginsWithIt) {
  EXPECT_THAT(Serve({{{1}}}, 10), ElementsAre("inserted 0/1 0 @1", "may go 0"));
}

TEST_F(SimulatedStoreTest, WhatIsThereIsHeldThenUsedDeepestFirst) {
  EXPECT_THAT(Serve({{{1, 2}}, {{1, 2}}}, 10),
              ElementsAre("must stay 1", "used 1 @2", "used 0 @2", "may go 1"));
  EXPECT_EQ(hits_, 2u);
}

TEST_F(SimulatedStoreTest, APromptThatGoesOnHangsItsNewBlockOnTheOld) {
  EXPECT_THAT(Serve({{{1, 2}}, {{1, 2, 3}}}, 10),
              ElementsAre("must stay 1", "missed 2 @2", "inserted 2/3 2 @2", "may go 2",
                          "used 1 @2", "used 0 @2"));
}

TEST_F(SimulatedStoreTest, RoomIsMadeFromTheEndAndAParentMayGoThen) {
  EXPECT_THAT(Serve({{{1, 2}}, {{5}}}, 2),
              ElementsAre("missed 0 @2", "removed 1", "may go 0", "inserted 0/1 1 @2", "may go 1"));
}

TEST_F(SimulatedStoreTest, OfAPromptThatIsTooLongItsBeginningStays) {
  Serve({{{1, 2, 3, 4}}, {{1, 2, 3, 4}}}, 3);
  EXPECT_EQ(hits_, 3u);
  EXPECT_EQ(store_->held(), 3u);
  EXPECT_EQ(store_->declined(), 0u);
}

TEST_F(SimulatedStoreTest, AfterADeclinedBlockNothingOfThePromptComes) {
  Serve({{{1, 2, 3, 4}}, {{1, 2, 3, 4}}}, 10, 2, false);
  EXPECT_EQ(hits_, 2u);
  EXPECT_EQ(store_->declined(), 2u);
}

TEST_F(SimulatedStoreTest, ADeclinedBlockDisplacesNobody) {
  EXPECT_THAT(Serve({{{1, 2}}, {{5}}}, 2, 0), ElementsAre("missed 0 @2"));
  EXPECT_EQ(store_->evicted(), 0u);
  EXPECT_EQ(store_->declined(), 1u);
}

TEST(HitCountsTest, LateBlocksSaveMoreThanEarlyOnes) {
  HitCounts counts;
  counts.Add(2, 1000);
  counts.Add(1, 500);
  EXPECT_EQ(counts.hit_blocks, 3u);
  EXPECT_EQ(counts.hit_tokens, 1500u);
  EXPECT_GT(PrefillSeconds(20000) - PrefillSeconds(19000), PrefillSeconds(1000));
  EXPECT_NEAR(counts.saved_prefill_seconds, PrefillSeconds(1000) + PrefillSeconds(500), 1e-12);
}

}  // namespace
}  // namespace cairn::bench
