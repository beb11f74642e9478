// A real store, asked as one worker asks it, beside the simulated one: for each policy, each
// request of random traces hits as many blocks in both.

#include <gmock/gmock.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cache_node/store/policies/policy_registry.h"
#include "tests/bench/eviction/fake_trace.h"
#include "tests/bench/eviction/simulated_store.h"
#include "tests/cache_node/store/test_store.h"

namespace cairn::bench {
namespace {

using node::TestPrompt;
using node::TestStore;

constexpr uint64_t kBlockBytes = 512;
constexpr uint64_t kPoolBytes = 16 * 4096;
constexpr uint32_t kSlots = kPoolBytes / kBlockBytes;

// Conversations that go on, with a few system prompts, and some prompts that never return.
std::vector<FakeTrace::Prompt> RandomPrompts(uint64_t seed, size_t count) {
  std::mt19937_64 random(seed);
  std::vector<FakeTrace::Prompt> talks(12);
  std::vector<FakeTrace::Prompt> prompts;
  uint64_t next_id = 100;
  for (size_t i = 0; i < count; ++i) {
    FakeTrace::Prompt& talk = talks[random() % talks.size()];
    if (talk.ids.empty() || talk.ids.size() > 40) {
      const uint64_t system = random() % 3;
      talk.ids = {10 * system, 10 * system + 1, 10 * system + 2};
    }
    for (size_t more = 1 + random() % 6; more > 0; --more) talk.ids.push_back(next_id++);
    talk.arrival_s = static_cast<double>(i);
    prompts.push_back(talk);
    if (random() % 4 == 0) talk.ids.clear();
  }
  return prompts;
}

class StoreAgreementTest : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<node::EvictionPolicyFactory> Policies() const {
    return *node::MakeEvictionPolicies(GetParam());
  }
};

// Leases what is there, reserves the rest, writes it, and ends its lease. Answers what was there.
uint32_t Serve(TestStore* store, const TestPrompt& prompt) {
  const node::LookupAnswer found = store->Lease(prompt);
  const uint32_t hits = found.prompts[0].present;
  EXPECT_EQ(found.prompts[0].leased, hits);
  if (hits < prompt.keys.size()) {
    const auto reserved = store->Reserve(prompt, hits);
    EXPECT_TRUE(reserved.ok()) << reserved.status();
    for (uint32_t i = 0; i < reserved->outcomes.size(); ++i) {
      if (reserved->outcomes[i] != node::ReserveOutcome::kReserved) continue;
      const BlockKey& key = prompt.keys[hits + i];
      EXPECT_TRUE(store->WriteBlock("t", *reserved->token, key, i).ok());
      EXPECT_TRUE(store->CommitBlock("t", *reserved->token, key, i).ok());
    }
  }
  if (found.lease.has_value()) {
    EXPECT_TRUE(store->store->EndLease("t", *found.lease, 0, {hits}).ok());
  }
  return hits;
}

// The prompt whose blocks' tokens follow from the ids.
TestPrompt PromptOf(TestStore* store, const FakeTrace::Prompt& prompt) {
  TestPrompt made = store->Prompt("t", static_cast<uint32_t>(prompt.ids[0]), 1);
  for (size_t i = 1; i < prompt.ids.size(); ++i) {
    made = store->Branch(made, i, static_cast<uint32_t>(prompt.ids[i]), 1);
  }
  return made;
}

TEST_P(StoreAgreementTest, HitsWhatTheSimulationHits) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<FakeTrace::Prompt> prompts = RandomPrompts(seed, 600);
    FakeTrace reader(prompts);
    const BlockTrace trace = *BlockTrace::Read(&reader, {});
    SimulatedStore simulated(&trace, kSlots, Policies()->Make());
    TestStore store({.pool_bytes = kPoolBytes, .policies = Policies()});
    store.Register(TestStore::Shape(kBlockBytes));
    for (size_t i = 0; i < prompts.size(); ++i) {
      const uint32_t hits = simulated.Serve(trace.requests()[i]);
      ASSERT_EQ(Serve(&store, PromptOf(&store, prompts[i])), hits) << "request " << i;
    }
    EXPECT_GT(store.counters.evicted_blocks, 0u);
    EXPECT_EQ(store.counters.evicted_blocks, simulated.evicted());
    EXPECT_EQ(store.counters.declined_newcomers, simulated.declined());
  }
}

INSTANTIATE_TEST_SUITE_P(EachPolicy, StoreAgreementTest, ::testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const absl::string_view name : node::EvictionPolicyNames()) {
                             names.emplace_back(name);
                           }
                           return names;
                         }()),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace cairn::bench
