// Random calls under a seed from threads and from processes that are killed in between; afterwards
// nothing is held any more.
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cluster/node_fixture.h"
#include "tests/cluster/numbered_prompt.h"
#include "tests/cluster/random_caller.h"

namespace cairn::testing {
namespace {

constexpr int kThreads = 4;
constexpr int kCallsEach = 2500;
constexpr int kActors = 3;
// A process is killed each time that so many calls were made.
constexpr int kCallsPerKill = 500;

class RandomCallsTest : public NodeTest {
 protected:
  // Makes its calls; stops at the first whose answer breaks the contract.
  void MakeCalls(uint64_t seed) {
    const auto client = NewClient();
    RandomCaller caller(&**client, *name_space_, seed);
    for (int i = 0; i < kCallsEach; ++i) {
      const absl::Status status = caller.Call();
      if (!status.ok()) {
        ADD_FAILURE() << "seed " << seed << ", call " << i << ": " << status;
        break;
      }
      if (++calls_ % kCallsPerKill == 0) ++kills_due_;
    }
    blocks_read_ += caller.blocks_read();
    blocks_committed_ += caller.blocks_committed();
    ++threads_done_;
  }

  std::unique_ptr<ChildProcess> StartCaller(uint64_t seed) {
    auto actor = StartActor("caller", {absl::StrCat("--seed=", seed)});
    Expect(*actor, "calling");
    return actor;
  }

  std::unique_ptr<NamespaceHandle> name_space_;
  std::atomic<int> calls_{0};
  std::atomic<int> kills_due_{0};
  std::atomic<int> threads_done_{0};
  std::atomic<uint64_t> blocks_read_{0};
  std::atomic<uint64_t> blocks_committed_{0};
};

TEST_F(RandomCallsTest, AfterTenThousandCallsAndKillsNothingIsHeld) {
  ASSERT_NO_FATAL_FAILURE(
      StartNode({"--host-memory=8MiB", "--memory-limit=1GiB", "--token-ttl-ms=2000"}));
  const char* const given = std::getenv("CAIRN_TEST_SEED");
  const uint64_t seed = given == nullptr ? std::random_device()() : std::stoull(given);
  std::cout << "CAIRN_TEST_SEED=" << seed << "\n";
  const auto client = NewClient();
  name_space_ = std::make_unique<NamespaceHandle>(Register(**client, SmallBlocks()));

  std::vector<std::unique_ptr<ChildProcess>> actors;
  uint64_t next_seed = seed + 1000;
  for (int i = 0; i < kActors; ++i) actors.push_back(StartCaller(next_seed++));
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, s = seed + static_cast<uint64_t>(i)] { MakeCalls(s); });
  }
  int kills = 0;
  while (threads_done_ < kThreads) {
    std::unique_ptr<ChildProcess>& actor = actors[static_cast<size_t>(kills) % kActors];
    // Also the wait for the next kill.
    EXPECT_EQ(actor->WaitExit(absl::Milliseconds(5)), std::nullopt) << "a caller ended by itself";
    if (HasFailure()) break;
    if (kills >= kills_due_) continue;
    actor->Kill9();
    ++kills;
    actor = StartCaller(next_seed++);
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& actor : actors) actor->Kill9();
  std::cout << calls_ << " calls, " << kills + kActors << " kills, " << blocks_read_
            << " blocks read, " << blocks_committed_ << " committed\n";
  EXPECT_EQ(calls_, kThreads * kCallsEach);
  EXPECT_GT(kills, 0);
  EXPECT_GT(blocks_read_, 0u);
  EXPECT_GT(blocks_committed_, 0u);
  EXPECT_TRUE(AwaitDescribe(
      [](const v1::DescribeResponse& node) { return IsIdle(node) && node.load().tokens() == 0; }));
  EXPECT_EQ(Describe().quarantined(), 0u);
}

}  // namespace
}  // namespace cairn::testing
