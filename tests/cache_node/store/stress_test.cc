// Threads: readers against eviction, deletion and retirement pressure. Each reader checks every
// byte under its pin against the key's own pattern before it believes that the pin held.
#include <gmock/gmock.h>

#include <atomic>
#include <climits>
#include <random>
#include <thread>

#include "tests/cache_node/store/test_store.h"

namespace cairn::node {
namespace {

constexpr uint64_t kBlockBytes = 1024;
constexpr uint32_t kPrompts = 40;
constexpr size_t kBlocks = 4;

class Stress {
 public:
  Stress() {
    t_.Register(TestStore::Shape(kBlockBytes));
    for (uint32_t i = 0; i < kPrompts; ++i) {
      prompts_.push_back(t_.Prompt(i % 2 == 0 ? "t" : "u", 1 + i, kBlocks));
    }
  }

  // Puts what is missing of random prompts; others may reserve the same blocks.
  void Write(uint64_t seed, int rounds) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < rounds && !stop_; ++i) {
      const TestPrompt& prompt = prompts_[random() % kPrompts];
      const auto reserved = t_.Reserve(prompt);
      if (!reserved.ok() || !reserved->token.has_value()) continue;
      for (uint32_t block = 0; block < kBlocks; ++block) {
        if (reserved->outcomes[block] != ReserveOutcome::kReserved) continue;
        if (!t_.WriteBlock(prompt.tenant(), *reserved->token, prompt.keys[block], block).ok())
          break;
        (void)t_.CommitBlock(prompt.tenant(), *reserved->token, prompt.keys[block], block);
      }
      if (random() % 4 > 0) (void)t_.store->Abort(prompt.tenant(), *reserved->token);
    }
  }

  // Until `wanted` blocks were read by all readers together.
  void Read(uint64_t seed, uint64_t wanted) {
    std::mt19937_64 random(seed);
    while (read_ < wanted) {
      const TestPrompt& prompt = prompts_[random() % kPrompts];
      const LookupAnswer leased = t_.Lease(prompt);
      if (!leased.lease.has_value()) continue;
      const uint32_t blocks = leased.prompts[0].leased;
      for (uint32_t block = 0; block < blocks; ++block) {
        const BlockPin pin = t_.Pin(prompt.tenant(), prompt.keys[block], leased.lease);
        if (!pin) continue;  // Deleted meanwhile.
        std::this_thread::yield();
        if (!t_.Intact(pin, prompt.keys[block])) ++broken_;
        ++read_;
      }
      (void)t_.store->EndLease(prompt.tenant(), *leased.lease, 0, {blocks});
    }
  }

  // Until stopped.
  void Disturb(uint64_t seed) {
    std::mt19937_64 random(seed);
    while (!stop_) {
      const TestPrompt& prompt = prompts_[random() % kPrompts];
      switch (random() % 16) {
        case 0:
          (void)t_.store->Delete(prompt.tenant(), t_.fingerprint(),
                                 {prompt.keys[random() % kBlocks]});
          break;
        case 1:
          (void)t_.store->ReportMismatch(prompt.tenant(), t_.fingerprint(), prompt.keys[0],
                                         {0, 0, 0});
          break;
        case 2:
          t_.Advance(absl::Milliseconds(100));
          break;
        default:
          t_.Lookup(prompt.tenant(), prompt, /*touch=*/true);
      }
    }
  }

  TestStore t_;
  std::vector<TestPrompt> prompts_;
  std::atomic<uint64_t> broken_{0};
  std::atomic<uint64_t> read_{0};
  std::atomic<bool> stop_{false};
};

TEST(StressTest, ReadersUnderEvictionPressureSeeTheBytesOfTheirKeysOrNothing) {
  Stress stress;
  std::vector<std::thread> readers;
  std::vector<std::thread> others;
  for (uint64_t i = 0; i < 2; ++i) {
    others.emplace_back([&stress, i] { stress.Write(10 + i, INT_MAX); });
    readers.emplace_back([&stress, i] { stress.Read(20 + i, 2000); });
  }
  others.emplace_back([&stress] { stress.Disturb(30); });
  for (std::thread& reader : readers) reader.join();
  stress.stop_ = true;
  for (std::thread& other : others) other.join();
  EXPECT_EQ(stress.broken_, 0u);
  EXPECT_GT(stress.t_.counters.evicted_blocks, 100u);
  stress.t_.AdvancePastEverything();
  EXPECT_TRUE(stress.t_.Quiet().ok()) << stress.t_.Quiet();
}

TEST(StressTest, ManyWritersOfOneKeyLeaveOneIntactBlock) {
  TestStore t;
  t.Register(TestStore::Shape(kBlockBytes));
  const TestPrompt prompt = t.Prompt("t", 1, 1);
  std::atomic<int> reserved{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] {
      const auto answer = t.Reserve(prompt);
      if (!answer.ok() || !answer->token.has_value()) return;
      ++reserved;
      (void)t.WriteBlock("t", *answer->token, prompt.keys[0], 0);
      (void)t.CommitBlock("t", *answer->token, prompt.keys[0], 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(reserved, 1);
  EXPECT_EQ(t.counters.committed_blocks, 1u);
  EXPECT_TRUE(t.Intact(t.Pin("t", prompt.keys[0]), prompt.keys[0]));
}

TEST(StressTest, RetirementUnderLoadLetsNoByteOutAfterItReturns) {
  for (uint64_t round = 0; round < 20; ++round) {
    Stress stress;
    stress.Write(1, 60);
    std::thread writer([&stress] { stress.Write(2, 200); });
    std::thread looker([&stress] {
      for (int i = 0; i < 300; ++i) stress.t_.Present(stress.prompts_[i % kPrompts]);
    });
    while (stress.t_.counters.committed_blocks < 30 + round) std::this_thread::yield();
    const Fingerprint fingerprint = stress.t_.fingerprint();
    const auto retired = stress.t_.store->RetireNamespace(fingerprint);
    EXPECT_TRUE(retired.ok());
    EXPECT_EQ(stress.t_.store->Status().blocks, 0u);
    for (const TestPrompt& prompt : stress.prompts_) {
      EXPECT_FALSE(stress.t_.Pin(prompt.tenant(), prompt.keys[0]));
    }
    writer.join();
    looker.join();
    EXPECT_EQ(stress.t_.store->Status().host_used_bytes, 0u);
    stress.t_.AdvancePastEverything();
    EXPECT_TRUE(stress.t_.Quiet().ok()) << stress.t_.Quiet();
  }
}

}  // namespace
}  // namespace cairn::node
