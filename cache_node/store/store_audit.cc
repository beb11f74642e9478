// StoreState::Audit: everything counted again from the entries themselves.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cache_node/store/store_state.h"
#include "common/base/hex.h"
#include "common/identity/segment_digest.h"

namespace cairn::node {
namespace {

// What the entries add up to.
struct Totals {
  uint64_t slot_bytes = 0;
  uint64_t reserved_bytes = 0;
  uint64_t leased_bytes = 0;
  uint64_t pinned_bytes = 0;
  uint64_t pins = 0;
  uint64_t index_bytes = 0;
  uint64_t present = 0;
  uint64_t loading = 0;
  std::vector<uint64_t> charged;  // By tenant.
  std::vector<uint64_t> stays;    // By tenant.
  std::vector<uint32_t> held;     // By memory segment.
  std::vector<ShardSums> shards;
};

absl::Status Wrong(const BlockEntry& entry, absl::string_view what) {
  return absl::InternalError(absl::StrCat("block ", ToHex(entry.key.view()), ": ", what));
}

absl::Status AuditParts(const BlockEntry& entry) {
  size_t required_missing = 0;
  for (size_t i = 0; i < entry.map->parts().size(); ++i) {
    const PayloadMap::Part& part = entry.map->parts()[i];
    uint32_t committed = 0;
    for (size_t layer = 0; layer < part.layers; ++layer) {
      if (entry.segments[part.first_segment + layer] == SegmentState::kCommitted) ++committed;
    }
    if (committed != entry.layers_committed[i].load(std::memory_order_relaxed)) {
      return Wrong(entry, "a part miscounts its committed layers");
    }
    if (part.required && committed < part.layers) ++required_missing;
  }
  if (required_missing != entry.required_parts_missing) {
    return Wrong(entry, "required parts are miscounted");
  }
  const bool complete = required_missing == 0;
  if (entry.life != BlockEntry::Life::kGone &&
      complete != (entry.life == BlockEntry::Life::kPresent)) {
    return Wrong(entry, "present and complete are not the same");
  }
  return absl::OkStatus();
}

absl::Status AuditLinks(const BlockEntry& entry) {
  uint32_t links = 0;
  for (const LeaseLink* link = entry.leases; link != nullptr; link = link->next) {
    if (link->entry != &entry) return Wrong(entry, "a lease's link names another block");
    ++links;
  }
  if (links != entry.lease_pins) return Wrong(entry, "pins of leases are miscounted");
  if (entry.lease_pins > entry.pins) return Wrong(entry, "leases pin more than all do");
  if (entry.token != nullptr && entry.token->blocks[entry.token_block].entry != &entry) {
    return Wrong(entry, "its token names another block");
  }
  return absl::OkStatus();
}

void Count(const BlockEntry& entry, Totals* totals) {
  totals->slot_bytes += entry.block_bytes();
  totals->pins += entry.pins + entry.claims;
  totals->leased_bytes += entry.lease_pins * entry.block_bytes();
  if (entry.held()) totals->pinned_bytes += entry.block_bytes();
  totals->charged[entry.space->slot_class.tenant] += entry.charge.bytes();
  if (entry.stays()) totals->stays[entry.space->slot_class.tenant] += entry.block_bytes();
  if (entry.counts_as_held) ++totals->held[entry.slot.segment];
  if (entry.life == BlockEntry::Life::kReserved || entry.life == BlockEntry::Life::kLoading) {
    totals->reserved_bytes += entry.block_bytes();
  }
  if (entry.life == BlockEntry::Life::kLoading) ++totals->loading;
}

}  // namespace

absl::Status StoreState::AuditIndexed(const BlockEntry& entry) const {
  if (entry.life == BlockEntry::Life::kGone) return Wrong(entry, "is gone and in the index");
  if (entry.scope == nullptr) return Wrong(entry, "is in no scope");
  if (entry.life == BlockEntry::Life::kReserved && entry.token == nullptr) {
    return Wrong(entry, "is reserved by no token");
  }
  if (disk.enabled && entry.disk != disk.index.Find(entry.partition, entry.key)) {
    return Wrong(entry, "is not where it thinks it is on disk");
  }
  if (entry.device != device.Find(entry.partition, entry.key)) {
    return Wrong(entry, "is not where it thinks it is on the device");
  }
  if (disk.QueuedToSpill(entry) && (entry.disk != 0 || entry.spilling)) {
    return Wrong(entry, "waits to be written for nothing");
  }
  const ParentId id{entry.partition, entry.key};
  const Retention& retention = entry.retention;
  if (retention.expires_unix_ms != 0 && !expiries.Has(retention.expires_unix_ms, id)) {
    return Wrong(entry, "has an end that nothing waits for");
  }
  if (retention.priority_until_unix_ms != 0 &&
      !priorities.Has(retention.priority_until_unix_ms, id)) {
    return Wrong(entry, "has a priority whose end nothing waits for");
  }
  if (entry.stays() && !StaysAsScheduled(entry)) {
    return Wrong(entry, "stays for an end that nothing waits for");
  }
  const bool in_flight = disk.writes.FindBlock({entry.partition, entry.key}) != nullptr;
  if (entry.spilling && !in_flight) return Wrong(entry, "is being written by nobody");
  if (entry.children != nullptr) {
    if (absl::Status status = families.AuditFamily(*entry.children); !status.ok()) return status;
    if (entry.children->parent != &entry) return Wrong(entry, "its family has another parent");
  }
  if (entry.family == nullptr) {
    return entry.orphan ? Wrong(entry, "is an orphan without a family") : absl::OkStatus();
  }
  if (absl::Status status = families.AuditFamily(*entry.family); !status.ok()) return status;
  const BlockEntry* parent = index.Find(entry.family->id.partition, entry.family->id.key);
  if (parent != entry.family->parent) return Wrong(entry, "its family misses the parent");
  const bool below =
      parent == nullptr && CopyOf(entry.family->id.partition, entry.family->id.key).handle != 0;
  if (below != entry.family->below) return Wrong(entry, "its family misses the parent elsewhere");
  const bool unreachable = parent == nullptr ? !below : parent->orphan;
  if (!families.has_work() && entry.orphan != unreachable) {
    return Wrong(entry, "is marked wrongly: orphan or not");
  }
  return absl::OkStatus();
}

absl::Status StoreState::AuditDisk() const {
  if (!disk.enabled) return absl::OkStatus();
  if (absl::Status status = disk.index.Audit(); !status.ok()) return status;
  if (disk.index.bytes() > disk.options.index_bytes_max) {
    return absl::InternalError("the index of the disk is larger than it may be");
  }
  uint64_t spilling_bytes = 0;
  for (const auto& [id, write] : disk.writes.all()) {
    if (write.entry == nullptr) continue;
    if (!write.entry->spilling || write.entry->pins == 0) {
      return Wrong(*write.entry, "is written and does not know it");
    }
    spilling_bytes += write.task.block.payload_bytes;
  }
  if (spilling_bytes != disk.writes.spilling_bytes()) {
    return absl::InternalError("bytes that are being written are miscounted");
  }
  return absl::OkStatus();
}

absl::Status StoreState::AuditLoads() const {
  uint64_t waiting = disk.load_queue.size() + device.load_queue.size();
  const auto look = [&waiting](const BlockEntry& entry) {
    if (entry.life == BlockEntry::Life::kLoading) ++waiting;
    return entry.claims > 0;
  };
  for (const auto& [id, entry] : disk.taken_loads) {
    if (!look(*entry)) return Wrong(*entry, "is read into a slot that nothing holds");
  }
  for (const auto& [id, load] : device.loads) {
    if (!look(*load.entry)) return Wrong(*load.entry, "is copied into a slot that nothing holds");
    if (load.block->pins == 0)
      return Wrong(*load.entry, "is copied from a slot that nothing holds");
  }
  if (disk.loading != waiting) return absl::InternalError("a loading block waits for nobody");
  return absl::OkStatus();
}

absl::Status StoreState::AuditDevice() const {
  if (absl::Status status = device.Audit(); !status.ok()) return status;
  uint64_t uploading_bytes = 0;
  for (const auto& [id, upload] : device.uploads) {
    if (!upload.entry->uploading || upload.entry->pins == 0 || upload.block->pins == 0) {
      return Wrong(*upload.entry, "is copied to the device and does not know it");
    }
    uploading_bytes += upload.entry->block_bytes();
  }
  if (uploading_bytes != device.uploading_bytes) {
    return absl::InternalError("bytes on their way to the device are miscounted");
  }
  if (device.enabled() && ledger.Total().device_bytes != device.memory()->used_bytes()) {
    return absl::InternalError("slots of the device are charged to nobody");
  }
  return AuditLoads();
}

absl::Status StoreState::Audit() const {
  Totals totals;
  totals.charged.resize(ledger.tenant_count() + 1);
  totals.stays.resize(ledger.tenant_count() + 1);
  totals.held.resize(slots.memory().segment_count());
  totals.shards.resize(index.shard_count());
  absl::Status status;
  const auto look = [&](const BlockEntry& entry) {
    Count(entry, &totals);
    status.Update(AuditParts(entry));
    status.Update(AuditLinks(entry));
    status.Update(slots.AuditEntry(entry));
  };
  index.ForEach([&](const BlockEntry& entry) {
    look(entry);
    totals.index_bytes += entry.index_bytes;
    status.Update(AuditIndexed(entry));
    if (entry.life != BlockEntry::Life::kPresent) return;
    ++totals.present;
    ShardSums::TierSum& sum = totals.shards[index.ShardOf(entry.key)].tiers[1];
    ++sum.blocks;
    sum.key_sum += FeedKeyDigest(entry.key);
  });
  for (const auto& [borrower, charge] : staging) totals.charged[charge.tenant()] += charge.bytes();
  for (const auto& [key, entry] : gone) {
    look(*entry);
    if (entry->life != BlockEntry::Life::kGone || !entry->held()) {
      status.Update(Wrong(*entry, "is kept although nothing holds it"));
    }
  }
  if (!status.ok()) return status;
  if (absl::Status on_disk = AuditDisk(); !on_disk.ok()) return on_disk;
  if (absl::Status on_device = AuditDevice(); !on_device.ok()) return on_device;
  for (uint32_t shard = 0; shard < index.shard_count(); ++shard) {
    if (index.SumsOf(shard) == totals.shards[shard]) continue;
    return absl::InternalError(absl::StrCat("shard ", shard, " has another digest"));
  }
  for (TenantIndex tenant = 1; tenant <= ledger.tenant_count(); ++tenant) {
    if (ledger.UsageOf(tenant).stays_bytes != totals.stays[tenant]) {
      return absl::InternalError("a tenant's blocks that are to stay are miscounted");
    }
    if (ledger.UsageOf(tenant).charged_bytes == totals.charged[tenant]) continue;
    return absl::InternalError(absl::StrCat("tenant ", ledger.NameOf(tenant), " is charged ",
                                            ledger.UsageOf(tenant).charged_bytes, " bytes for ",
                                            totals.charged[tenant]));
  }
  const std::pair<uint64_t, uint64_t> counted[] = {
      {slots.memory().used_bytes(), totals.slot_bytes},
      {ledger.Total().reserved_bytes, totals.reserved_bytes},
      {ledger.Total().leased_bytes, totals.leased_bytes},
      {pinned_bytes, totals.pinned_bytes},
      {pins, totals.pins},
      {index.index_bytes(), totals.index_bytes},
      {index.present(), totals.present},
      {disk.loading, totals.loading}};
  constexpr const char* kNames[] = {"slots", "reserved", "leased",  "pinned",
                                    "pins",  "index",    "present", "loading"};
  for (size_t i = 0; i < std::size(counted); ++i) {
    if (counted[i].first == counted[i].second) continue;
    return absl::InternalError(absl::StrCat(kNames[i], ": ", counted[i].first,
                                            " counted, and there are ", counted[i].second));
  }
  return slots.AuditHeld(totals.held);
}

}  // namespace cairn::node
