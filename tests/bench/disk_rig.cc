#include "tests/bench/disk_rig.h"

#include <utility>

#include "cache_node/store/policies/lru_policy.h"

namespace cairn::bench {

absl::StatusOr<std::unique_ptr<DiskRig>> DiskRig::Open(const Options& options) {
  absl::StatusOr<std::unique_ptr<node::RocksDbDiskTier>> tier = node::RocksDbDiskTier::Open(
      {.directory = options.dir, .bytes_max = options.disk_bytes, .file_system = nullptr});
  if (!tier.ok()) return tier.status();
  absl::StatusOr<std::unique_ptr<node::HostMemory>> memory =
      node::HostMemory::Create(options.pool_bytes);
  if (!memory.ok()) return memory.status();
  std::unique_ptr<DiskRig> rig(new DiskRig(options, *std::move(tier), *std::move(memory)));
  absl::Status opened = node::DiskRecovery(rig->tier_.get(), rig->store_.get()).Open();
  if (!opened.ok()) return opened;
  return rig;
}

DiskRig::DiskRig(const Options& options, std::unique_ptr<node::RocksDbDiskTier> tier,
                 std::unique_ptr<node::HostMemory> memory)
    : time_(&clock_, absl::Seconds(1)), tier_(std::move(tier)), ledger_(tier_.get()) {
  node::BlockStore::Options of_store;
  of_store.disk.index_bytes_max = options.index_bytes;
  store_ = std::make_unique<node::BlockStore>(
      of_store, &time_, &random_, &counters_, std::move(memory),
      std::make_unique<node::LruPolicyFactory>(), node::BlockStore::Signals{}, &ledger_);
  const node::SpillWriter::Options writing{
      .file_bytes_max = options.file_bytes, .file_age_max = absl::Seconds(1), .writer = 1};
  writer_ = std::make_unique<node::SpillWriter>(writing, tier_.get(), store_.get());
  const node::FileReclaimer::Options reclaiming{.headroom_bytes = 2 * options.file_bytes,
                                                .writer = 1};
  reclaimer_ = std::make_unique<node::FileReclaimer>(reclaiming, tier_.get(), store_.get());
  loader_ = std::make_unique<node::BlockLoader>(tier_.get(), store_.get());
}

absl::Status DiskRig::Recover() {
  return node::DiskRecovery(tier_.get(), store_.get()).Recover(clock_.WallNow(), [] {
    return true;
  });
}

void DiskRig::Settle() {
  time_.Tick();
  while (writer_->Step(clock_.SteadyNow(), clock_.WallNow())) {
  }
  while (reclaimer_->Step(clock_.WallNow())) {
  }
}

void DiskRig::Flush() {
  Settle();
  writer_->Flush();
  Settle();
}

}  // namespace cairn::bench
