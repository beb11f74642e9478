// DiskWorld: a TestStore over a disk in memory, and an emulated device where asked for, with all
// movers, which its tests step by hand. It can be killed and started again over the same disk.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cache_node/spill/block_loader.h"
#include "cache_node/spill/device_filler.h"
#include "cache_node/spill/device_loader.h"
#include "cache_node/spill/disk_recovery.h"
#include "cache_node/spill/file_reclaimer.h"
#include "cache_node/spill/health_probe.h"
#include "cache_node/spill/spill_writer.h"
#include "cache_node/spill/tier_ledger.h"
#include "kernels/device/emulated_device.h"
#include "tests/cache_node/store/test_store.h"
#include "tests/testing/memory_disk_tier.h"

namespace cairn::node {

struct DiskWorldOptions {
  BlockStore::Options store = {};
  // 16 memory segments of 16 KiB: 256 blocks of 1 KiB.
  uint64_t pool_bytes = 16 * 16384;
  uint64_t disk_bytes = uint64_t{64} << 20;
  // About four blocks of 1 KiB, with what records take beside.
  uint64_t file_bytes = 5000;
  uint64_t headroom_bytes = 16384;
  uint64_t device_bytes = 0;  // 0: no device.
  kernels::EmulatedDevice::Options device = {};
  // LRU where not set.
  std::function<std::unique_ptr<EvictionPolicyFactory>()> policies = nullptr;
};

class DiskWorld {
 public:
  static constexpr uint64_t kBlockBytes = 1024;

  explicit DiskWorld(DiskWorldOptions options = {});

  TestStore& t() { return *store_; }
  BlockStore& store() { return *store_->store; }
  StoreCounters& counters() { return store_->counters; }
  testing::MemoryDiskTier& disk() { return disk_; }
  DiskTier* tier() { return &disk_; }

  // The process dies and another one starts over the same disk. Namespaces are not registered anew.
  void Restart();
  // In two parts: the ledger is read in the first, blocks are found in the second.
  void RestartBeforeRecovery();
  void Recover();

  // Movers, until they have nothing to do now.
  void Spill();  // Finishes the open file too.
  size_t Load();
  void Reclaim();
  bool StepSpill();
  bool StepReclaim();  // At most one file.
  bool StepLoad() { return loader_->Step(); }
  void StepHealth();
  // Of the device.
  kernels::EmulatedDevice& device() { return *emulated_; }
  DeviceTier& device_tier() { return *device_; }
  void Fill();
  bool StepFill() { return filler_->Step(); }
  void LoadFromDevice();
  bool StepDeviceLoad() { return device_loader_->Step(); }
  // Puts the prompt, copies it to the device, and fills the host with others: it is only there.
  TestPrompt PutOnDevice(const std::string& tenant, uint32_t seed, size_t blocks,
                         const std::string& salt = "");
  // Flips a byte of the copy on the device.
  void DamageOnDevice(const std::string& tenant, const BlockKey& key);

  // --- Verbs ---
  // Other prompts take all of the host's room.
  void FillHost(uint32_t seed);
  // Puts the prompt, spills it, and fills the host with others: it is only on disk.
  TestPrompt PutOnDisk(const std::string& tenant, uint32_t seed, size_t blocks,
                       const std::string& salt = "");
  LookupAnswer Promote(const TestPrompt& prompt);
  LookupAnswer LeaseAll(const TestPrompt& prompt, bool hold_pending,
                        std::optional<LeaseId> resume = std::nullopt);
  // All blocks are in host memory and hold their bytes.
  bool Intact(const TestPrompt& prompt);
  // How many of them are in this state.
  size_t Count(const TestPrompt& prompt, BlockState state);
  absl::Status Audit() { return store().Audit(); }

 private:
  void Start();
  void StartDevice();
  absl::Time Steady() { return store_->clock.SteadyNow(); }
  absl::Time Wall() { return store_->clock.WallNow(); }

  const DiskWorldOptions options_;
  testing::MemoryDiskTier disk_;
  TierLedger ledger_{&disk_};
  std::unique_ptr<DeviceTier> device_;
  kernels::EmulatedDevice* emulated_ = nullptr;  // device_'s.
  std::unique_ptr<TestStore> store_;
  std::unique_ptr<SpillWriter> writer_;
  std::unique_ptr<BlockLoader> loader_;
  std::unique_ptr<FileReclaimer> reclaimer_;
  std::unique_ptr<HealthProbe> probe_;
  std::unique_ptr<DeviceFiller> filler_;
  std::unique_ptr<DeviceLoader> device_loader_;
};

}  // namespace cairn::node
