// Estimates against exact LRUs over requests made up here: lists that hold every block. With room
// for all blocks in the sample both agree to the block; with a sample, within two points.

#include "cache_node/store/working_set.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <random>
#include <unordered_map>

namespace cairn::node {
namespace {

using Prompt = std::vector<uint64_t>;  // Numbers of its blocks, from the first.

constexpr uint64_t kBytes = 100;

// As evenly spread as the keys of blocks.
uint64_t KeyOf(uint64_t block) {
  uint64_t key = (block + 1) * 0x9e3779b97f4a7c15;
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9;
  key = (key ^ (key >> 27)) * 0x94d049bb133111eb;
  return key ^ (key >> 31);
}

class ExactLru {
 public:
  explicit ExactLru(size_t blocks) : blocks_max_(blocks) {}

  void Ask(const Prompt& prompt) {
    for (const uint64_t block : prompt) {
      ++asked_;
      hits_ += places_.contains(block) ? 1 : 0;
    }
    for (size_t i = prompt.size(); i-- > 0;) Use(prompt[i]);
  }
  double HitRate() const { return static_cast<double>(hits_) / static_cast<double>(asked_); }

 private:
  void Use(uint64_t block) {
    if (const auto known = places_.find(block); known != places_.end()) {
      newest_first_.erase(known->second);
    }
    newest_first_.push_front(block);
    places_[block] = newest_first_.begin();
    if (newest_first_.size() <= blocks_max_) return;
    places_.erase(newest_first_.back());
    newest_first_.pop_back();
  }

  const size_t blocks_max_;
  std::list<uint64_t> newest_first_;
  std::unordered_map<uint64_t, std::list<uint64_t>::iterator> places_;
  uint64_t asked_ = 0;
  uint64_t hits_ = 0;
};

// Conversations that go on, the recent ones more likely, all behind one system prompt: so a few
// blocks are asked for in each request.
std::vector<Prompt> Conversations(uint64_t seed, size_t requests) {
  std::mt19937_64 random(seed);
  std::vector<Prompt> talks;
  std::vector<Prompt> prompts;
  uint64_t next = 4;
  for (size_t i = 0; i < requests; ++i) {
    if (talks.empty() || random() % 8 == 0) talks.push_back({0, 1, 2, 3});
    const double back = std::exponential_distribution<double>(0.02)(random);
    const size_t at = talks.size() - 1 - std::min(talks.size() - 1, static_cast<size_t>(back));
    for (uint64_t more = 1 + random() % 20; more > 0; --more) talks[at].push_back(next++);
    prompts.push_back(talks[at]);
  }
  return prompts;
}

// Single blocks, some far more often asked for than others.
std::vector<Prompt> Skewed(uint64_t seed, size_t requests) {
  std::mt19937_64 random(seed);
  std::vector<Prompt> prompts;
  for (size_t i = 0; i < requests; ++i) {
    const double uniform = std::uniform_real_distribution<double>(0, 1)(random);
    prompts.push_back({static_cast<uint64_t>(std::exp(uniform * std::log(50000)))});
  }
  return prompts;
}

void Ask(WorkingSet* set, const Prompt& prompt) {
  WorkingSet::Prompt pass;
  for (size_t i = prompt.size(); i-- > 0;) set->Ask(KeyOf(prompt[i]), kBytes, &pass);
}

std::vector<uint64_t> BytesOf(const std::vector<size_t>& blocks) {
  std::vector<uint64_t> bytes;
  for (const size_t count : blocks) bytes.push_back(count * kBytes);
  return bytes;
}

void ExpectNear(const std::vector<Prompt>& prompts, const std::vector<size_t>& sizes,
                size_t samples_max, double tolerance) {
  WorkingSet set({.sizes_bytes = BytesOf(sizes), .samples_max = samples_max});
  std::vector<ExactLru> exact;
  for (const size_t size : sizes) exact.emplace_back(size);
  for (const Prompt& prompt : prompts) {
    Ask(&set, prompt);
    for (ExactLru& lru : exact) lru.Ask(prompt);
    ASSERT_LE(set.samples(), samples_max);
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    SCOPED_TRACE(sizes[i]);
    EXPECT_NEAR(set.HitRate(i), exact[i].HitRate(), tolerance);
    EXPECT_GT(exact[i].HitRate(), 0.02);
    EXPECT_LT(exact[i].HitRate(), 0.98);
  }
}

TEST(WorkingSetTest, WithAllBlocksInTheSampleItIsExact) {
  ExpectNear(Conversations(1, 2000), {500, 1000, 2000, 4000}, 100000, 1e-9);
  ExpectNear(Skewed(1, 20000), {50, 500, 5000}, 100000, 1e-9);
}

TEST(WorkingSetTest, ASampleIsWithinTwoPoints) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    ExpectNear(Conversations(seed, 6000), {2000, 4000, 8000, 16000}, 4096, 0.02);
    ExpectNear(Skewed(seed, 100000), {2000, 4000, 8000, 16000}, 4096, 0.02);
  }
}

TEST(WorkingSetTest, TheSampleIsBoundedAndItsRateFalls) {
  WorkingSet set({.sizes_bytes = {uint64_t{1} << 40}, .samples_max = 256});
  EXPECT_EQ(set.rate(), 1);
  for (uint64_t block = 0; block < 100000; ++block) {
    Ask(&set, {block});
    ASSERT_LE(set.samples(), 256u);
  }
  EXPECT_LE(set.rate(), 1.0 / 256);
  EXPECT_GE(set.rate(), 1.0 / 4096);
  EXPECT_EQ(set.HitRate(0), set.HitRate(0));
  EXPECT_LT(set.HitRate(0), 0.02);
}

TEST(WorkingSetTest, WhatTheLargestWouldHaveLostTakesNoSample) {
  WorkingSet set({.sizes_bytes = {10 * kBytes, 40 * kBytes}, .samples_max = 1024});
  for (uint64_t block = 0; block < 100000; ++block) Ask(&set, {block});
  EXPECT_EQ(set.rate(), 1);
  EXPECT_LE(set.samples(), 42u);
}

TEST(WorkingSetTest, LargeBlocksTakeMoreRoom) {
  WorkingSet set({.sizes_bytes = {250, 1000}});
  const auto ask = [&](uint64_t block, uint64_t bytes) {
    WorkingSet::Prompt prompt;
    set.Ask(KeyOf(block), bytes, &prompt);
  };
  ask(1, 100);
  ask(2, 200);
  ask(1, 100);
  EXPECT_EQ(set.HitRate(0), 0);
  EXPECT_DOUBLE_EQ(set.HitRate(1), 1.0 / 3);
}

TEST(WorkingSetTest, OldRequestsCountLess) {
  WorkingSet set({.sizes_bytes = {kBytes}, .half_life_blocks = 100});
  for (uint64_t i = 0; i < 1000; ++i) Ask(&set, {i});
  EXPECT_EQ(set.HitRate(0), 0);
  for (uint64_t i = 0; i < 1000; ++i) Ask(&set, {7});
  EXPECT_GT(set.HitRate(0), 0.98);
}

TEST(WorkingSetTest, BeforeAnyRequestNothingIsHit) {
  EXPECT_EQ(WorkingSet({.sizes_bytes = {1}}).HitRate(0), 0);
}

TEST(WorkingSetTest, PartsOfAPromptWithOthersBetweenCountAsThePrompt) {
  WorkingSet set({.sizes_bytes = {3 * kBytes}});
  Ask(&set, {1, 2, 3});
  WorkingSet::Prompt again;
  set.Ask(KeyOf(3), kBytes, &again);
  set.Ask(KeyOf(2), kBytes, &again);
  set.Ask(KeyOf(1), kBytes, &again);
  EXPECT_DOUBLE_EQ(set.HitRate(0), 0.5);
}

}  // namespace
}  // namespace cairn::node
