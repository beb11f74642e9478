// BlockStore: construction, locking, namespaces, time, feed and numbers.
#include "cache_node/store/block_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_node/store/run_steps.h"
#include "cache_node/store/store_state.h"
#include "common/base/check.h"
#include "common/identity/frame.h"
#include "common/rpc/caller_identity.h"

namespace cairn::node {
namespace {

// Of one call: time goes on for leases and tokens too.
constexpr int kRetentionSectionsMax = 16;
constexpr int kShrinkSectionsMax = 4;

bool HasLabelOf(const NamespaceRecord& record, absl::string_view tenant) {
  const auto first = record.labels.lower_bound({std::string(tenant), ""});
  return first != record.labels.end() && first->first == tenant;
}

}  // namespace

BlockStore::BlockStore(const Options& options, const GuardedTime* time, RandomSource* random,
                       StoreCounters* counters, std::unique_ptr<HostMemory> memory,
                       std::unique_ptr<EvictionPolicyFactory> policies, Signals signals,
                       DurableLedger* ledger, DeviceMemory* device)
    : options_(options),
      time_(time),
      counters_(counters),
      signals_(std::move(signals)),
      slot_bytes_max_(memory->slot_bytes_max()),
      pinner_(memory->pinner()),
      ledger_(ledger),
      state_(std::make_unique<StoreState>(options, random, counters, std::move(memory),
                                          std::move(policies), ledger != nullptr, device)) {}

BlockStore::~BlockStore() = default;

BlockStore::Section::Section(BlockStore* store) : store_(store) { store_->mutex_.Lock(); }

BlockStore::Section::~Section() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  StoreState& state = *store_->state_;
  const bool settled = std::exchange(state.settled, false);
  const bool spills = std::exchange(state.spills_queued, false);
  const bool loads = std::exchange(state.loads_queued, false);
  const bool recalls = std::exchange(state.recalled, false);
  const bool uploads = std::exchange(state.uploads_queued, false);
  const bool device_loads = std::exchange(state.device_loads_queued, false);
  std::vector<WatcherId> woken = state.feed.TakeWoken();
  if (const size_t shards = state.feed.TakeGivenUp(); shards > 0) {
    store_->counters_->feed_shards_given_up.fetch_add(shards, std::memory_order_relaxed);
  }
  store_->mutex_.Unlock();
  if (settled && store_->signals_.settled) store_->signals_.settled();
  if (spills && store_->signals_.spills) store_->signals_.spills();
  if (loads && store_->signals_.loads) store_->signals_.loads();
  if (recalls && store_->signals_.recalls) store_->signals_.recalls();
  if (uploads && store_->signals_.uploads) store_->signals_.uploads();
  if (device_loads && store_->signals_.device_loads) store_->signals_.device_loads();
  if (!woken.empty() && store_->signals_.feed) store_->signals_.feed(std::move(woken));
}

void BlockStore::RunChores() {
  RunSteps([](StoreState* state, absl::Time now) {
    state->RunChores(kStepsPerLock, now);
    return !state->HasChores();
  });
}

absl::StatusOr<RegisteredNamespace> BlockStore::RegisterNamespace(absl::string_view tenant,
                                                                  absl::string_view name,
                                                                  const Namespace& fields) {
  if (name.empty()) return absl::InvalidArgumentError("the name of a namespace is empty");
  if (absl::Status status = ValidateStringField("name", name); !status.ok()) return status;
  const absl::StatusOr<Fingerprint> fingerprint = FingerprintOf(fields);
  if (!fingerprint.ok()) return fingerprint.status();
  const absl::StatusOr<PayloadMap> map = PayloadMap::Make(fields.layout);
  if (!map.ok()) return map.status();
  if (map->block_bytes() > slot_bytes_max_) {
    return absl::FailedPreconditionError(
        absl::StrCat("a block of this layout takes ", map->block_bytes(),
                     " bytes and a memory segment of this node holds ", slot_bytes_max_,
                     ": give the node a larger host pool, or use smaller blocks"));
  }
  Section section(this);
  const absl::StatusOr<NamespaceTable::Registration> registered =
      state_->namespaces.Register(tenant, name, *fingerprint, fields, *map);
  if (!registered.ok()) return registered.status();
  if (registered->created) {
    state_->feed.Record(FeedNamespace{.namespace_index = registered->record->index,
                                      .tenant = std::string(tenant),
                                      .name = std::string(name),
                                      .retired = false});
  }
  return RegisteredNamespace{*fingerprint, registered->created, map->block_bytes()};
}

const PayloadMap* BlockStore::FindPayloadMap(const Fingerprint& fingerprint) const {
  absl::ReaderMutexLock lock(&mutex_);
  const NamespaceRecord* record = state_->namespaces.FindLive(fingerprint);
  return record == nullptr ? nullptr : &record->map;
}

std::optional<uint64_t> BlockStore::LiveEpoch(const Fingerprint& fingerprint) const {
  absl::ReaderMutexLock lock(&mutex_);
  const NamespaceRecord* record = state_->namespaces.FindLive(fingerprint);
  if (record == nullptr) return std::nullopt;
  return record->epoch.load(std::memory_order_relaxed);
}

const Namespace* BlockStore::FindNamespace(const Fingerprint& fingerprint) const {
  absl::ReaderMutexLock lock(&mutex_);
  const NamespaceRecord* record = state_->namespaces.FindLive(fingerprint);
  return record == nullptr ? nullptr : &record->fields;
}

void BlockStore::SetQuotas(TenantQuotas quotas) {
  Section section(this);
  state_->ledger.SetQuotas(std::move(quotas));
  state_->QuotasChanged();
}

bool BlockStore::IsKnownTo(absl::string_view tenant, const Fingerprint& fingerprint) const {
  absl::ReaderMutexLock lock(&mutex_);
  const NamespaceRecord* record = state_->namespaces.FindLive(fingerprint);
  return record != nullptr && (HasLabelOf(*record, tenant) || HasLabelOf(*record, kPublicTenant));
}

void BlockStore::Tick() {
  RunSteps([](StoreState* state, absl::Time now) {
    state->removed.AdvanceTo(now);
    const bool more = state->StepExpiry(kStepsPerLock, now);
    state->RunChores(kStepsPerLock, now);
    return !more && !state->HasChores();
  });
  int sections = kShrinkSectionsMax;
  RunSteps([&sections](StoreState* state, absl::Time) {
    const bool more = state->StepStaysOver(kStepsPerLock) || state->StepShrink(kStepsPerLock);
    return !more || --sections == 0;
  });
}

void BlockStore::EndRetention(absl::Time wall) {
  const int64_t now_unix_ms = absl::ToUnixMillis(wall);
  int sections = kRetentionSectionsMax;
  RunSteps([now_unix_ms, &sections](StoreState* state, absl::Time) {
    return !state->StepRetention(kStepsPerLock, now_unix_ms) || --sections == 0;
  });
  RunChores();
}

WatcherId BlockStore::AddWatcher() {
  Section section(this);
  return state_->feed.Add(state_->namespaces.LiveLabels());
}

void BlockStore::RemoveWatcher(WatcherId watcher) {
  Section section(this);
  state_->feed.Remove(watcher);
}

void BlockStore::ResyncWatcher(WatcherId watcher, const std::vector<uint32_t>& shards) {
  Section section(this);
  state_->feed.Resync(watcher, shards);
}

void BlockStore::QueueHeartbeat(WatcherId watcher) {
  Section section(this);
  state_->feed.QueueHeartbeat(watcher);
}

FeedMessage BlockStore::NextFeedMessage(WatcherId watcher) {
  Section section(this);
  FeedMessage message = state_->feed.Next(watcher);
  if (std::holds_alternative<FeedCut>(message)) {
    counters_->watchers_cut.fetch_add(1, std::memory_order_relaxed);
  }
  return message;
}

BlockStore::PartitionName BlockStore::NameOf(PartitionIndex partition) const {
  absl::ReaderMutexLock lock(&mutex_);
  const NamespaceTable& namespaces = state_->namespaces;
  const Partition& named = namespaces.PartitionAt(partition);
  return {named.name_space->fingerprint, state_->ledger.NameOf(named.tenant)};
}

KeyRules BlockStore::NamespaceOf(uint32_t namespace_index) const {
  absl::ReaderMutexLock lock(&mutex_);
  const NamespaceRecord& record = state_->namespaces.At(namespace_index);
  return {record.fingerprint, record.fields.key_scheme, record.map.layout().block_tokens};
}

absl::Status BlockStore::Audit() const {
  absl::ReaderMutexLock lock(&mutex_);
  return state_->Audit();
}

StoreStatus BlockStore::Status() const {
  absl::ReaderMutexLock lock(&mutex_);
  const HostMemory& memory = static_cast<const StoreState&>(*state_).slots.memory();
  const DeviceMemory* device = state_->device.memory();
  return {.host_bytes = memory.pool_bytes(),
          .host_used_bytes = memory.used_bytes(),
          .pinned_bytes = state_->pinned_bytes,
          .reserved_bytes = state_->ledger.Total().reserved_bytes,
          .stays_bytes = state_->ledger.Total().stays_bytes,
          .index_bytes = state_->index.index_bytes(),
          .blocks = state_->index.present(),
          .pins = state_->pins,
          .leases = static_cast<uint32_t>(state_->leases.open()),
          .tokens = static_cast<uint32_t>(state_->tokens.size()),
          .watchers = static_cast<uint32_t>(state_->feed.watcher_count()),
          .recovering = state_->disk.recovering,
          .disk_blocks = state_->disk.index.size(),
          .disk_payload_bytes = state_->disk.index.payload_bytes(),
          .disk_index_bytes = state_->disk.index.bytes(),
          .disk_files = state_->disk.index.files().size(),
          .spill_queue_blocks = state_->disk.spill_queue.size(),
          .spill_queue_bytes = state_->disk.spill_queue.bytes(),
          .missed_spill_blocks = state_->disk.missed_spills.size(),
          .loads = state_->disk.loading,
          .device_failed = state_->device.failed,
          .device_blocks = state_->device.index.size(),
          .device_bytes = device == nullptr ? 0 : device->pool_bytes(),
          .device_used_bytes = device == nullptr ? 0 : device->used_bytes(),
          .device_index_bytes = device == nullptr ? 0 : state_->device.bytes(),
          .wanted_blocks = state_->device.wanted.size()};
}

std::vector<HitRateAtCapacity> BlockStore::HitRates() const {
  absl::ReaderMutexLock lock(&mutex_);
  std::vector<HitRateAtCapacity> rates;
  for (const TierWorkingSet& tier : static_cast<const StoreState&>(*state_).working_sets) {
    for (size_t i = 0; i < kCapacityFactors.size(); ++i) {
      rates.push_back({tier.tier, kCapacityFactors[i], tier.set.HitRate(i)});
    }
  }
  return rates;
}

std::vector<NamespaceStatus> BlockStore::Namespaces(absl::string_view tenant) const {
  absl::ReaderMutexLock lock(&mutex_);
  const StoreState& state = *state_;
  const TenantIndex index = state.ledger.Find(tenant);
  std::vector<NamespaceStatus> statuses;
  for (const auto& [name, record] : state.namespaces.LabelsOfTenant(tenant)) {
    if (record->retired) continue;
    const PartitionIndex partition =
        index == 0 ? 0 : state.namespaces.FindPartition(*record, index);
    statuses.push_back(
        {.fingerprint = record->fingerprint,
         .name = name,
         .model = record->fields.model,
         .block_tokens = record->map.layout().block_tokens,
         .block_bytes = record->map.block_bytes(),
         .blocks = partition == 0 ? 0 : state.namespaces.PartitionAt(partition).blocks,
         .disk_blocks = partition == 0 ? 0 : state.disk.index.scopes().BlocksOf(partition),
         .device_blocks = partition == 0 ? 0 : state.device.index.scopes().BlocksOf(partition)});
  }
  return statuses;
}

std::vector<TenantStatus> BlockStore::Tenants() const {
  absl::ReaderMutexLock lock(&mutex_);
  std::vector<TenantStatus> statuses;
  for (TenantIndex tenant = 1; tenant <= state_->ledger.tenant_count(); ++tenant) {
    const TenantLedger::Usage usage = state_->ledger.UsageOf(tenant);
    statuses.push_back({.tenant = state_->ledger.NameOf(tenant),
                        .charged_bytes = usage.charged_bytes,
                        .disk_bytes = usage.disk_bytes,
                        .device_bytes = usage.device_bytes,
                        .leased_bytes = usage.leased_bytes,
                        .reserved_bytes = usage.reserved_bytes,
                        .stays_bytes = usage.stays_bytes});
  }
  return statuses;
}

std::vector<ShardSums> BlockStore::Shards() const {
  absl::ReaderMutexLock lock(&mutex_);
  std::vector<ShardSums> sums;
  for (uint32_t shard = 0; shard < state_->feed_tiers.shard_count(); ++shard) {
    sums.push_back(state_->feed_tiers.SumsOf(shard));
  }
  return sums;
}

}  // namespace cairn::node
