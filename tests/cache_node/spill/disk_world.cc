#include "tests/cache_node/spill/disk_world.h"

#include <algorithm>

#include "common/base/check.h"

namespace cairn::node {

DiskWorld::DiskWorld(DiskWorldOptions options) : options_(options), disk_(options.disk_bytes) {
  Start();
  t().Register(TestStore::Shape(kBlockBytes));
  Recover();
}

void DiskWorld::StartDevice() {
  if (options_.device_bytes == 0) return;
  auto emulated = std::make_unique<kernels::EmulatedDevice>(options_.device);
  emulated_ = emulated.get();
  absl::StatusOr<std::unique_ptr<DeviceTier>> tier =
      DeviceTier::Open(std::move(emulated), options_.device_bytes);
  CAIRN_CHECK_OK(tier.status());
  device_ = *std::move(tier);
}

void DiskWorld::Start() {
  StartDevice();
  store_ = std::make_unique<TestStore>(
      TestStoreOptions{.store = options_.store,
                       .pool_bytes = options_.pool_bytes,
                       .hasher = nullptr,
                       .policies = options_.policies ? options_.policies() : nullptr,
                       .ledger = &ledger_,
                       .device = device_.get()});
  const SpillWriter::Options writing{
      .file_bytes_max = options_.file_bytes, .file_age_max = absl::Seconds(1), .writer = 1};
  writer_ = std::make_unique<SpillWriter>(writing, &disk_, &store());
  loader_ = std::make_unique<BlockLoader>(&disk_, &store());
  reclaimer_ = std::make_unique<FileReclaimer>(
      FileReclaimer::Options{.headroom_bytes = options_.headroom_bytes, .writer = 1}, &disk_,
      &store());
  probe_ = std::make_unique<HealthProbe>(&disk_, &store());
  if (device_ != nullptr) {
    filler_ = std::make_unique<DeviceFiller>(device_.get(), &store());
    device_loader_ = std::make_unique<DeviceLoader>(device_.get(), &store());
  }
  CAIRN_CHECK_OK(DiskRecovery(&disk_, &store()).Open());
}

void DiskWorld::Recover() {
  CAIRN_CHECK_OK(DiskRecovery(&disk_, &store()).Recover(Wall(), [] { return true; }));
}

void DiskWorld::RestartBeforeRecovery() {
  const Fingerprint fingerprint = t().fingerprint();
  const absl::Time wall = Wall();
  disk_.Kill();
  filler_.reset();
  device_loader_.reset();
  probe_.reset();
  reclaimer_.reset();
  loader_.reset();
  writer_.reset();
  store_.reset();
  Start();
  if (Wall() < wall) t().Advance(wall - Wall());
  if (store().FindPayloadMap(fingerprint) != nullptr) t().Know(fingerprint);
}

void DiskWorld::Restart() {
  RestartBeforeRecovery();
  Recover();
}

bool DiskWorld::StepSpill() { return writer_->Step(Steady(), Wall()); }

void DiskWorld::Spill() {
  while (StepSpill()) {
  }
  writer_->Flush();
}

size_t DiskWorld::Load() {
  size_t loads = 0;
  while (loader_->Step()) ++loads;
  return loads;
}

bool DiskWorld::StepReclaim() { return reclaimer_->Step(Wall()); }

void DiskWorld::Reclaim() {
  while (StepReclaim()) {
  }
}

void DiskWorld::StepHealth() { probe_->Step(Steady()); }

void DiskWorld::Fill() {
  while (StepFill()) {
  }
}

void DiskWorld::LoadFromDevice() {
  while (StepDeviceLoad()) {
  }
}

TestPrompt DiskWorld::PutOnDevice(const std::string& tenant, uint32_t seed, size_t blocks,
                                  const std::string& salt) {
  TestPrompt prompt = t().Prompt(tenant, seed, blocks, salt);
  CAIRN_CHECK(t().Put(prompt) == blocks);
  Fill();
  FillHost(1000 * seed);
  CAIRN_CHECK(Count(prompt, BlockState::kDevice) == blocks);
  return prompt;
}

void DiskWorld::DamageOnDevice(const std::string& tenant, const BlockKey& key) {
  const BlockStore::DevicePinAnswer copy = store().PinOnDevice(tenant, t().fingerprint(), key);
  CAIRN_CHECK(copy.pin);
  auto* bytes = const_cast<std::byte*>(copy.pin.address());
  bytes[copy.pin.map().block_bytes() / 2] ^= std::byte{1};
}

void DiskWorld::FillHost(uint32_t seed) {
  const size_t slots = options_.pool_bytes / kBlockBytes;
  for (uint32_t i = 0; i < slots / 16; ++i) {
    CAIRN_CHECK(t().Put(t().Prompt("t", seed + i, 16)) == 16);
  }
}

TestPrompt DiskWorld::PutOnDisk(const std::string& tenant, uint32_t seed, size_t blocks,
                                const std::string& salt) {
  TestPrompt prompt = t().Prompt(tenant, seed, blocks, salt);
  CAIRN_CHECK(t().Put(prompt) == blocks);
  Spill();
  FillHost(1000 * seed);
  CAIRN_CHECK(Count(prompt, BlockState::kDisk) == blocks);
  return prompt;
}

LookupAnswer DiskWorld::Promote(const TestPrompt& prompt) {
  LookupQuery query;
  query.prompts.push_back({.keys = prompt.keys, .tokens = prompt.tokens});
  query.promote = true;
  return store().Lookup(prompt.tenant(), t().fingerprint(), query);
}

LookupAnswer DiskWorld::LeaseAll(const TestPrompt& prompt, bool hold_pending,
                                 std::optional<LeaseId> resume) {
  LookupQuery query;
  query.prompts.push_back({.keys = prompt.keys, .tokens = prompt.tokens});
  query.lease = LeaseWish{.readers = 1, .ttl = absl::Seconds(10)};
  query.hold_pending = hold_pending;
  query.resume = resume;
  return store().Lookup(prompt.tenant(), t().fingerprint(), query);
}

bool DiskWorld::Intact(const TestPrompt& prompt) {
  return std::all_of(prompt.keys.begin(), prompt.keys.end(), [&](const BlockKey& key) {
    const BlockPin pin = t().Pin(prompt.tenant(), key);
    return pin && pin.readable() && t().Intact(pin, key);
  });
}

size_t DiskWorld::Count(const TestPrompt& prompt, BlockState state) {
  const std::vector<BlockState> states = t().States(prompt);
  return static_cast<size_t>(std::count(states.begin(), states.end(), state));
}

}  // namespace cairn::node
