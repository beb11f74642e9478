// Thousands of random calls under a seed, on a small store over a small disk that fails, fills,
// damages records, loses files and is killed, and in half of the runs beside a small device that
// does its work in random order, damages blocks and fails, against a model of what may be seen:
// nothing that was not committed, nothing that was removed by anybody's will however often the
// process died since, no other tenant's, no other bytes; and what was only on disk before a kill is
// there after it. The store is audited after each call.
#include <gmock/gmock.h>

#include <map>
#include <random>
#include <set>
#include <tuple>

#include "cache_node/spill/fence_pruner.h"
#include "cache_node/store/scope_digest.h"
#include "common/base/check.h"
#include "tests/cache_node/spill/disk_world.h"

namespace cairn::node {
namespace {

using testing::DiskCall;

DiskWorldOptions Small(uint64_t seed, bool with_device) {
  DiskWorldOptions options;
  if (with_device) {
    options.device_bytes = 16 * 4096;
    options.device.order = kernels::EmulatedDevice::Order::kRandom;
    options.device.seed = seed;
    options.store.device.wanted_blocks_max = 32;
    options.store.device.index_bytes_max = 24'000;
    options.store.device.uploading_bytes_max = 8 * 1024;
  }
  options.pool_bytes = 16 * 4096;
  options.disk_bytes = 120'000;
  options.headroom_bytes = 24'000;
  options.store.disk.spill_queue_blocks_max = 24;
  options.store.disk.loads_max = 12;
  options.store.disk.reinsert_share = 0.2;
  options.store.leased_bytes_max = 40 * 1024;
  options.store.reserved_bytes_max = 48 * 1024;
  return options;
}

class RandomDisk {
 public:
  RandomDisk(uint64_t seed, bool with_device)
      : random_(seed), with_device_(with_device), world_(Small(seed, with_device)) {
    shapes_ = {TestStore::Shape(1024), TestStore::Shape(2048, "large")};
    for (const Namespace& shape : shapes_) fingerprints_.push_back(world_.t().Register(shape));
  }

  void Step() {
    world_.t().Use(fingerprints_[Below(2)]);
    if (with_device_ && Below(2) == 0) return StepDevice();
    const uint64_t dice = Below(200);
    if (dice < 50) {
      Put();
    } else if (dice < 70) {
      LookUp();
    } else if (dice < 90) {
      Lease();
    } else if (dice < 115) {
      world_.StepSpill();
    } else if (dice < 150) {
      world_.StepLoad();
    } else if (dice < 160) {
      world_.Reclaim();
    } else if (dice < 170) {
      Remove();
    } else if (dice < 180) {
      world_.t().Advance(absl::Milliseconds(100 * Below(20)));
      world_.StepHealth();
      if (Below(4) == 0) {
        FencePruner(world_.tier(), &world_.store()).Step(world_.t().clock.SteadyNow());
      }
    } else if (dice < 192) {
      Fault();
    } else if (dice < 197) {
      world_.Spill();
    } else {
      Kill();
    }
  }

  DiskWorld& world() { return world_; }
  uint64_t reads() const { return reads_; }
  uint64_t kills() const { return kills_; }
  uint64_t expected() const { return expected_; }
  const StoreCounters& totals() const { return totals_; }
  void LetGo() { held_ = DevicePin(); }

  void AddCounters() {
    const StoreCounters& now = world_.counters();
    totals_.loaded_blocks += now.loaded_blocks;
    totals_.loads_damaged += now.loads_damaged;
    totals_.loads_failed += now.loads_failed;
    totals_.spills_failed += now.spills_failed;
    totals_.reinserted_blocks += now.reinserted_blocks;
    totals_.reclaimed_blocks += now.reclaimed_blocks;
    totals_.segment_remakes += now.segment_remakes;
    totals_.device_loaded_blocks += now.device_loaded_blocks;
    totals_.device_loads_damaged += now.device_loads_damaged;
    totals_.device_loads_failed += now.device_loads_failed;
    totals_.device_evicted_blocks += now.device_evicted_blocks;
    totals_.uploads_failed += now.uploads_failed;
  }

 private:
  using Block = std::tuple<Fingerprint, std::string, BlockKey>;

  uint64_t Below(uint64_t n) { return random_() % n; }

  void StepDevice() {
    const uint64_t dice = Below(100);
    if (dice < 50) {
      world_.StepFill();
    } else if (dice < 85) {
      world_.StepDeviceLoad();
    } else if (dice < 93) {
      const TestPrompt prompt = AnyPrompt();
      const BlockKey& key = prompt.keys[Below(prompt.keys.size())];
      if (PinOf(prompt.tenant(), key).pin) world_.DamageOnDevice(prompt.tenant(), key);
    } else if (dice < 99) {
      // Held over whatever comes next, of blocks that may be damaged.
      const TestPrompt prompt = AnyPrompt();
      held_ = PinOf(prompt.tenant(), prompt.keys[Below(prompt.keys.size())]).pin;
    } else if (Below(8) == 0) {
      world_.device().Fail("fell off the bus");
      world_.StepFill();
    }
  }
  BlockStore::DevicePinAnswer PinOf(const std::string& tenant, const BlockKey& key) {
    return world_.store().PinOnDevice(tenant, world_.t().fingerprint(), key);
  }

  TestPrompt AnyPrompt() {
    const char* const tenants[] = {"t", "u", "public"};
    const std::string tenant = tenants[Below(3)];
    const auto seed = static_cast<uint32_t>(1 + Below(12));
    if (tenant != "public" && Below(3) == 0) {
      return world_.t().After(world_.t().Prompt("public", seed, 2), tenant, seed, 1 + Below(4));
    }
    const size_t blocks = 1 + Below(6);
    TestPrompt prompt = world_.t().Prompt(tenant, seed, blocks, Below(4) == 0 ? "salt" : "");
    if (Below(3) > 0) return prompt;
    return world_.t().Branch(prompt, 1 + Below(blocks), static_cast<uint32_t>(100 + Below(4)),
                             1 + Below(3));
  }

  Block Named(const TestPrompt& prompt, const BlockKey& key) {
    return {world_.t().fingerprint(), prompt.tenant(), key};
  }

  void Put() {
    const TestPrompt prompt = AnyPrompt();
    const std::vector<BlockState> before = world_.t().States(prompt);
    world_.t().Put(prompt);
    const std::vector<BlockState> after = world_.t().States(prompt);
    for (size_t i = 0; i < after.size(); ++i) {
      if (after[i] != BlockState::kHost) continue;
      if (before[i] == BlockState::kHost)
        CAIRN_CHECK(visible_.contains(Named(prompt, prompt.keys[i])));
      visible_[Named(prompt, prompt.keys[i])] = prompt.scope.salt;
    }
  }

  void Check(const TestPrompt& prompt, const LookupAnswer& answer) {
    for (size_t i = 0; i < prompt.keys.size(); ++i) {
      const BlockState state = answer.prompts[0].blocks[i].state;
      const bool readable = state == BlockState::kHost || state == BlockState::kDisk ||
                            state == BlockState::kDevice || state == BlockState::kNotLeased;
      if (readable) CAIRN_CHECK(visible_.contains(Named(prompt, prompt.keys[i])));
      CAIRN_CHECK(i >= answer.prompts[0].present || readable);
    }
  }

  void LookUp() {
    const TestPrompt prompt = AnyPrompt();
    Check(prompt, Below(2) == 0 ? world_.Promote(prompt)
                                : world_.t().Lookup(prompt.tenant(), prompt, Below(2) == 0));
    const BlockKey& key = prompt.keys[Below(prompt.keys.size())];
    const BlockPin pin = world_.t().Pin(prompt.tenant(), key);
    if (!pin) return;
    CAIRN_CHECK(visible_.contains(Named(prompt, key)));
    CAIRN_CHECK(pin.readable() && world_.t().Intact(pin, key));
    ++reads_;
  }

  // One whole life of a lease whose caller waits, reads and ends it, or dies.
  void Lease() {
    const TestPrompt prompt = AnyPrompt();
    LookupAnswer answer = world_.LeaseAll(prompt, /*hold_pending=*/true);
    Check(prompt, answer);
    while (Below(3) > 0 && (world_.StepLoad() || (with_device_ && world_.StepDeviceLoad()))) {
    }
    if (Below(4) == 0) return;
    answer = world_.LeaseAll(prompt, /*hold_pending=*/false, answer.lease);
    Check(prompt, answer);
    const PromptAnswer& got = answer.prompts[0];
    CAIRN_CHECK(got.leased <= got.present && answer.lease.has_value() == (got.leased > 0));
    for (uint32_t i = 0; i < got.leased; ++i) {
      const BlockPin pin = world_.t().Pin(prompt.tenant(), prompt.keys[i], answer.lease);
      CAIRN_CHECK(pin && pin.readable() && world_.t().Intact(pin, prompt.keys[i]));
      ++reads_;
    }
    if (!answer.lease.has_value() || Below(4) == 0) return;
    CAIRN_CHECK_OK(
        world_.store().EndLease(prompt.tenant(), *answer.lease, 0, {got.leased}).status());
  }

  void Remove() {
    const TestPrompt prompt = AnyPrompt();
    const Fingerprint fingerprint = world_.t().fingerprint();
    const uint64_t how = Below(12);
    if (how < 8) {
      const BlockKey& key = prompt.keys[Below(prompt.keys.size())];
      const auto removed = world_.store().Delete(prompt.tenant(), fingerprint, {key});
      if (removed.ok()) {
        visible_.erase(Named(prompt, key));
        CAIRN_CHECK(!world_.t().Pin(prompt.tenant(), key));
      } else {
        CAIRN_CHECK(absl::IsUnavailable(removed.status()) ||
                    absl::IsResourceExhausted(removed.status()));
      }
    } else if (how < 11) {
      const auto cleared =
          world_.store().ClearScope(prompt.tenant(), fingerprint, ScopeDigest(prompt.scope));
      if (!cleared.ok()) return;
      std::erase_if(visible_, [&](const auto& block) {
        return std::get<0>(block.first) == fingerprint &&
               std::get<1>(block.first) == prompt.tenant() && block.second == prompt.scope.salt;
      });
      CAIRN_CHECK(world_.t().Present(prompt) == 0);
    } else {
      const auto retired = world_.store().RetireNamespace(fingerprint);
      if (!retired.ok()) return;
      std::erase_if(visible_,
                    [&](const auto& block) { return std::get<0>(block.first) == fingerprint; });
      for (const Namespace& shape : shapes_) world_.t().Register(shape);
    }
  }

  bool Readable(const Block& block) {
    LookupQuery query;
    query.prompts.push_back({.keys = {std::get<2>(block)}});
    const LookupAnswer answer =
        world_.store().Lookup(std::get<1>(block), std::get<0>(block), query);
    return answer.prompts[0].present == 1;
  }

  void Fault() {
    const uint64_t how = Below(10);
    if (how < 6) {
      const auto call = static_cast<DiskCall>(Below(testing::kDiskCalls));
      if (call == DiskCall::kRecover || call == DiskCall::kReadLedger) return;
      const bool full = Below(4) == 0;
      world_.disk().Fail(
          call, full ? absl::ResourceExhaustedError("ENOSPC") : absl::UnavailableError("EIO"),
          static_cast<int>(1 + Below(3)));
      return;
    }
    const std::vector<uint64_t> files = world_.disk().files();
    if (how < 7) {
      world_.disk().Heal();
    } else if (!files.empty() && how < 9) {
      const uint64_t file = files[Below(files.size())];
      world_.disk().Damage({file, 0});
    } else if (!files.empty()) {
      world_.disk().LoseFile(files[Below(files.size())]);
      lost_ = true;
    }
  }

  void Kill() {
    AddCounters();
    held_ = DevicePin();
    world_.disk().Heal();
    std::set<Block> before;
    for (const auto& [block, salt] : visible_) {
      LookupQuery query;
      query.prompts.push_back({.keys = {std::get<2>(block)}});
      const LookupAnswer answer =
          world_.store().Lookup(std::get<1>(block), std::get<0>(block), query);
      if (answer.prompts[0].blocks[0].state == BlockState::kDisk) before.insert(block);
    }
    world_.RestartBeforeRecovery();
    for (size_t i = 0; i < shapes_.size(); ++i) world_.t().Register(shapes_[i]);
    for (uint64_t i = Below(6); i > 0; --i) {
      world_.t().Use(fingerprints_[Below(2)]);
      const uint64_t what = Below(4);
      if (what < 2) {
        Put();
      } else if (what == 2) {
        world_.Spill();
      } else {
        Remove();
      }
      CAIRN_CHECK_OK(world_.Audit());
    }
    world_.Recover();
    ++kills_;
    if (std::exchange(lost_, false)) return;
    for (const Block& block : before) {
      if (!visible_.contains(block)) continue;
      ++expected_;
      CAIRN_CHECK(Readable(block));
    }
  }

  std::mt19937_64 random_;
  const bool with_device_;
  DiskWorld world_;
  DevicePin held_;
  std::vector<Namespace> shapes_;
  std::vector<Fingerprint> fingerprints_;
  std::map<Block, std::string> visible_;  // With the salt of its scope.
  bool lost_ = false;
  uint64_t reads_ = 0;
  uint64_t kills_ = 0;
  uint64_t expected_ = 0;
  StoreCounters totals_;
};

class RandomDiskTest : public ::testing::TestWithParam<std::tuple<uint64_t, bool>> {};

TEST_P(RandomDiskTest, NothingUnseemlyIsSeenAndNothingDurableIsLost) {
  const auto [seed, with_device] = GetParam();
  RandomDisk random(seed, with_device);
  const int calls = with_device ? 80'000 : 40'000;
  for (int i = 0; i < calls; ++i) {
    random.Step();
    const absl::Status audit = random.world().Audit();
    ASSERT_TRUE(audit.ok()) << "after " << i << " calls: " << audit;
  }
  random.AddCounters();
  EXPECT_GT(random.reads(), 500u);
  EXPECT_GT(random.kills(), 20u);
  EXPECT_GT(random.expected(), 200u);
  EXPECT_GT(random.totals().loaded_blocks, 300u);
  EXPECT_GT(random.totals().loads_damaged, 0u);
  EXPECT_GT(random.totals().loads_failed, 3u);
  EXPECT_GT(random.totals().spills_failed, 10u);
  EXPECT_GT(random.totals().reinserted_blocks, 10u);
  EXPECT_GT(random.totals().reclaimed_blocks, 100u);
  EXPECT_GT(random.totals().segment_remakes, 10u);
  if (with_device) {
    EXPECT_GT(random.totals().device_loaded_blocks, 100u);
    EXPECT_GT(random.totals().device_loads_damaged, 0u);
    EXPECT_GT(random.totals().device_loads_failed, 0u);
    EXPECT_GT(random.totals().device_evicted_blocks, 30u);
    EXPECT_GT(random.totals().uploads_failed, 0u);
  }
  random.LetGo();
  random.world().disk().Heal();
  random.world().t().AdvancePastEverything();
  random.world().StepHealth();
  random.world().Spill();
  if (with_device) random.world().LoadFromDevice();
  random.world().Load();
  const absl::Status quiet = random.world().t().Quiet();
  EXPECT_TRUE(quiet.ok()) << quiet;
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomDiskTest,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4),
                                            ::testing::Values(false)));
INSTANTIATE_TEST_SUITE_P(SeedsBesideADevice, RandomDiskTest,
                         ::testing::Combine(::testing::Values(1, 2, 3), ::testing::Values(true)));

}  // namespace
}  // namespace cairn::node
