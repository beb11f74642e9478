// Threads: all movers of the disk tier beside writers, readers and removals, on a small store over
// a small disk in memory that fails now and then. Every reader checks every byte that it may read;
// at the end nothing is held, all that waits can be written, and what is on disk is right, also for
// the process after this one.
#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <random>
#include <thread>

#include "cache_node/spill/fence_pruner.h"
#include "cache_node/store/scope_digest.h"
#include "common/base/check.h"
#include "tests/cache_node/spill/disk_world.h"

namespace cairn::node {
namespace {

using testing::DiskCall;

// A write that failed is tried again after a pause, which doubles.
constexpr int kSettleRounds = 20;
constexpr uint32_t kPrompts = 48;
constexpr size_t kBlocks = 4;
constexpr uint64_t kReads = 1000;
constexpr uint64_t kMovesEach = 60;
constexpr int kFaultsMax =
    40;  // Beside damaged records: what the disk needs to be well costs time.

DiskWorldOptions Small() {
  DiskWorldOptions options;
  options.pool_bytes = 16 * 4096;
  options.disk_bytes = 120'000;
  options.headroom_bytes = 24'000;
  options.store.disk.loads_max = 12;
  options.store.disk.reinsert_share = 0.2;
  return options;
}

class DiskStress {
 public:
  explicit DiskStress(uint64_t seed) : seed_(seed), world_(Small()) {
    for (uint32_t i = 0; i < kPrompts; ++i) {
      prompts_.push_back(
          world_.t().Prompt(i % 2 == 0 ? "t" : "u", 1 + i, kBlocks, i % 4 == 0 ? "salt" : ""));
    }
  }

  void Run() {
    Start([this](auto& random) { Write(random); });
    Start([this](auto& random) { Write(random); });
    Start([this](auto& random) { Read(random); });
    Start([this](auto& random) { Read(random); });
    Start([this](auto& random) { Remove(random); });
    Start([this](auto& random) { Tend(random); });
    Start([this](auto&) { Step(world_.StepReclaim()); });
    for (int i = 0; i < 2; ++i) {
      threads_.emplace_back([this] { Spill(); });
      threads_.emplace_back([this] { Load(); });
    }
    for (std::thread& thread : threads_) thread.join();
  }

  // All that the threads left behind is done; the disk does not fail any more.
  void Settle() {
    world_.disk().Heal();
    for (int i = 0; i < kSettleRounds; ++i) {
      world_.t().AdvancePastEverything();
      world_.StepHealth();
      world_.Reclaim();
      world_.Spill();
      world_.Load();
    }
  }

  // What the threads' removals have left may be nothing.
  void PutAgain() {
    for (const TestPrompt& prompt : prompts_) world_.t().Put(prompt);
    Settle();
  }

  // Brings every block to host memory that can be read, and looks at it.
  uint64_t CountIntact() {
    uint64_t intact = 0;
    for (const TestPrompt& prompt : prompts_) {
      world_.Promote(prompt);
      world_.Load();
      for (const BlockKey& key : prompt.keys) {
        const BlockPin pin = world_.t().Pin(prompt.tenant(), key);
        if (!pin) continue;
        EXPECT_TRUE(world_.t().Intact(pin, key));
        ++intact;
      }
    }
    return intact;
  }

  DiskWorld& world() { return world_; }
  uint64_t broken() const { return broken_; }

 private:
  using Random = std::mt19937_64;

  bool Enough() {
    const StoreCounters& counters = world_.counters();
    return read_ >= kReads && counters.loaded_blocks >= kMovesEach &&
           counters.spilled_blocks >= kMovesEach && counters.reclaimed_blocks >= kMovesEach &&
           counters.spills_failed > 5 && counters.loads_damaged > 0;
  }

  void Start(std::function<void(Random&)> step) {
    threads_.emplace_back([this, step = std::move(step), number = threads_.size()] {
      Random random(100 * seed_ + number);
      while (!Enough()) step(random);
    });
  }
  static void Step(bool worked) {
    if (!worked) std::this_thread::yield();
  }
  const TestPrompt& Any(Random& random) { return prompts_[random() % kPrompts]; }

  void Write(Random& random) {
    const TestPrompt& prompt = Any(random);
    const auto reserved = world_.t().Reserve(prompt);
    if (!reserved.ok() || !reserved->token.has_value()) return;
    for (uint32_t block = 0; block < kBlocks; ++block) {
      if (reserved->outcomes[block] != ReserveOutcome::kReserved) continue;
      if (!world_.t()
               .WriteBlock(prompt.tenant(), *reserved->token, prompt.keys[block], block)
               .ok()) {
        break;
      }
      (void)world_.t().CommitBlock(prompt.tenant(), *reserved->token, prompt.keys[block], block);
    }
    if (random() % 4 > 0) (void)world_.store().Abort(prompt.tenant(), *reserved->token);
  }

  void Read(Random& random) {
    const TestPrompt& prompt = Any(random);
    LookupAnswer answer = world_.LeaseAll(prompt, /*hold_pending=*/true);
    for (uint64_t i = random() % 200; i > 0 && answer.lease.has_value(); --i) {
      std::this_thread::yield();
      if (answer.prompts[0].leased == kBlocks) break;
      answer = world_.LeaseAll(prompt, /*hold_pending=*/true, answer.lease);
    }
    answer = world_.LeaseAll(prompt, /*hold_pending=*/false, answer.lease);
    if (!answer.lease.has_value()) return;
    const uint32_t blocks = answer.prompts[0].leased;
    for (uint32_t i = 0; i < blocks; ++i) {
      const BlockPin pin = world_.t().Pin(prompt.tenant(), prompt.keys[i], answer.lease);
      if (!pin) continue;  // Removed meanwhile.
      if (random() % 2 == 0) std::this_thread::yield();
      if (!world_.t().Intact(pin, prompt.keys[i])) ++broken_;
      ++read_;
    }
    if (random() % 8 > 0) {
      (void)world_.store().EndLease(prompt.tenant(), *answer.lease, 0, {blocks});
    }
  }

  void Remove(Random& random) {
    const TestPrompt& prompt = Any(random);
    const Fingerprint& fingerprint = world_.t().fingerprint();
    switch (random() % 400) {
      case 0:
        (void)world_.store().RetireNamespace(fingerprint);
        // As it may be refused, whether it was retired or not.
        CAIRN_CHECK_OK(
            world_.store()
                .RegisterNamespace("t", "model", TestStore::Shape(DiskWorld::kBlockBytes))
                .status());
        break;
      case 1:
      case 2:
        (void)world_.store().ClearScope(prompt.tenant(), fingerprint, ScopeDigest(prompt.scope));
        break;
      case 3:
      case 4:
      case 5:
      case 6:
        (void)world_.store().Delete(prompt.tenant(), fingerprint,
                                    {prompt.keys[random() % kBlocks]});
        break;
      case 7:
        (void)world_.store().ReportMismatch(prompt.tenant(), fingerprint, prompt.keys[0],
                                            {0, 0, 0});
        break;
      default:
        world_.t().Lookup(prompt.tenant(), prompt, /*touch=*/true);
    }
  }

  // Time, health and faults.
  void Tend(Random& random) {
    std::this_thread::yield();
    world_.t().Advance(absl::Milliseconds(1));
    world_.StepHealth();
    if (random() % 64 == 0) {
      FencePruner(world_.tier(), &world_.store()).Step(world_.t().clock.SteadyNow());
    }
    if (random() % 256 != 0) return;
    if (random() % 3 == 0) {
      world_.disk().Fail(DiskCall::kRead, absl::DataLossError("a bad record"));
      return;
    }
    if (++faults_ > kFaultsMax) return;
    const auto call = static_cast<DiskCall>(random() % testing::kDiskCalls);
    if (call == DiskCall::kRecover || call == DiskCall::kReadLedger) return;
    const bool full = call != DiskCall::kRead && random() % 2 == 0;
    world_.disk().Fail(
        call, full ? absl::ResourceExhaustedError("ENOSPC") : absl::UnavailableError("EIO"));
  }

  void Spill() {
    const SpillWriter::Options options{
        .file_bytes_max = 5000, .file_age_max = absl::Milliseconds(50), .writer = 1};
    SpillWriter writer(options, world_.tier(), &world_.store());
    const auto& clock = world_.t().clock;
    while (!Enough()) Step(writer.Step(clock.SteadyNow(), clock.WallNow()));
  }

  void Load() {
    BlockLoader loader(world_.tier(), &world_.store());
    while (!Enough()) Step(loader.Step());
  }

  const uint64_t seed_;
  DiskWorld world_;
  std::vector<TestPrompt> prompts_;
  std::vector<std::thread> threads_;
  int faults_ = 0;  // Of the thread that tends.
  std::atomic<uint64_t> read_{0};
  std::atomic<uint64_t> broken_{0};
};

class DiskStressTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(DiskStressTest, ReadersSeeTheBytesOfTheirKeysAndNothingIsLeftHeld) {
  DiskStress stress(GetParam());
  stress.Run();
  EXPECT_EQ(stress.broken(), 0u);
  stress.Settle();
  const absl::Status quiet = stress.world().t().Quiet();
  EXPECT_TRUE(quiet.ok()) << quiet;
  const StoreStatus status = stress.world().store().Status();
  EXPECT_EQ(status.loads, 0u);
  EXPECT_EQ(status.spill_queue_blocks, 0u) << "something still counts as being written";
  EXPECT_EQ(status.missed_spill_blocks, 0u);
  stress.PutAgain();
  EXPECT_GT(stress.CountIntact(), 0u);
  EXPECT_TRUE(stress.world().t().Quiet().ok()) << stress.world().t().Quiet();
  stress.world().Restart();
  EXPECT_GT(stress.CountIntact(), 0u);
  EXPECT_TRUE(stress.world().Audit().ok()) << stress.world().Audit();
}

INSTANTIATE_TEST_SUITE_P(Seeds, DiskStressTest, ::testing::Values(1, 2));

}  // namespace
}  // namespace cairn::node
