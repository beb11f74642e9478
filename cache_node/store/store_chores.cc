// StoreState: leases and tokens that end, and the chores that follow.
#include <algorithm>
#include <utility>

#include "cache_node/store/store_state.h"
#include "common/base/check.h"

namespace cairn::node {

std::optional<uint32_t> StoreState::AddToLease(Lease* lease, BlockEntry* entry) {
  CAIRN_CHECK(!lease->ended && (entry->life == BlockEntry::Life::kPresent ||
                                entry->life == BlockEntry::Life::kLoading));
  if (auto it = lease->blocks.find(entry->key); it != lease->blocks.end()) {
    if (lease->links[it->second].entry != entry) return std::nullopt;
    return it->second;
  }
  if (!ledger.TryLease(lease->tenant, entry->block_bytes())) {
    counters->refused_leased.fetch_add(1, std::memory_order_relaxed);
    return std::nullopt;
  }
  const uint32_t place = static_cast<uint32_t>(lease->links.size());
  LeaseLink& link =
      lease->links.emplace_back(LeaseLink{.lease = lease, .entry = entry, .next = entry->leases});
  if (entry->leases != nullptr) entry->leases->previous = &link;
  entry->leases = &link;
  lease->blocks.emplace(entry->key, place);
  ++entry->lease_pins;
  Pin(entry);
  return place;
}

void StoreState::EndLease(Lease* lease, bool used, absl::Time now) {
  CAIRN_CHECK(!used || lease->request != 0);
  lease->used = used;
  leases.MarkEnded(lease, now + lease->ttl);
  releasing_.push_back(lease);
  settled = true;
}

void StoreState::RevokeLease(Lease* lease, absl::Time now) {
  if (lease->ended) return;
  lease->revoked = true;
  EndLease(lease, false, now);
}

void StoreState::DropFromLease(Lease* lease, LeaseLink* link) {
  CAIRN_CHECK(!lease->ended);
  ReleaseLink(lease, link);
}

// The link stays in the lease, empty.
void StoreState::ReleaseLink(Lease* lease, LeaseLink* link) {
  BlockEntry* entry = std::exchange(link->entry, nullptr);
  CAIRN_CHECK(entry != nullptr && entry->lease_pins > 0);
  (link->previous != nullptr ? link->previous->next : entry->leases) = link->next;
  if (link->next != nullptr) link->next->previous = link->previous;
  CAIRN_CHECK(lease->blocks.erase(entry->key) == 1);
  ledger.EndLease(lease->tenant, entry->block_bytes());
  if (lease->used) Used(entry, lease->request);
  --entry->lease_pins;
  Unpin(entry);
}

// The deepest block that the lease still has.
void StoreState::StepLeaseRelease(Lease* lease) {
  if (lease->links.back().entry != nullptr) ReleaseLink(lease, &lease->links.back());
  lease->links.pop_back();
}

void StoreState::CloseToken(Token* token) {
  tokens.MarkClosing(token);
  closing_.push_back(token);
}

// The last block that the token still has.
void StoreState::StepTokenClose(Token* token) {
  const TokenBlock block = token->blocks.back();
  if (block.entry != nullptr) {
    if (block.present) {
      block.entry->token = nullptr;
    } else {
      Remove(block.entry, RemovalReason::kNone);
    }
  }
  token->blocks.pop_back();
}

void StoreState::StepRevoke(BlockEntry* entry, absl::Time now) {
  CAIRN_CHECK(releasing_.empty());  // So no lease that ended has a link left.
  if (entry->leases != nullptr) {
    CAIRN_CHECK(!entry->leases->lease->ended);
    RevokeLease(entry->leases->lease, now);
    return;
  }
  revoking_.pop_front();
  Unpin(entry);
}

bool StoreState::StepFamilies() {
  if (!families.has_work()) return false;
  if (BlockEntry* changed = families.Step(); changed != nullptr) {
    slots.RefreshOrphan(changed);
    // Nobody can reach it, so it stays for nobody.
    if (changed->orphan && changed->stays()) EndStay(changed);
  }
  return true;
}

bool StoreState::HasChores() const {
  return families.has_work() || !revoking_.empty() || !releasing_.empty() || !closing_.empty();
}

void StoreState::RunChores(size_t steps, absl::Time now) {
  for (size_t i = 0; i < steps; ++i) {
    if (StepFamilies()) continue;
    if (!releasing_.empty()) {
      Lease* lease = releasing_.front();
      if (lease->links.empty()) {
        releasing_.pop_front();
        leases.GivenBack(lease);
      } else {
        StepLeaseRelease(lease);
      }
    } else if (!revoking_.empty()) {
      StepRevoke(revoking_.front(), now);
    } else if (!closing_.empty()) {
      Token* token = closing_.front();
      if (token->blocks.empty()) {
        closing_.pop_front();
        tokens.Erase(token);
      } else {
        StepTokenClose(token);
      }
    } else {
      return;
    }
  }
}

void StoreState::ExpireShares(Lease* lease, absl::Time now) {
  for (Lease::Reader& reader : lease->readers) {
    if (reader.share != Lease::Share::kActive || now < reader.expires) continue;
    reader.share = Lease::Share::kExpired;
    counters->expired_shares.fetch_add(1, std::memory_order_relaxed);
    settled = true;
  }
}

bool StoreState::StepExpiry(size_t steps, absl::Time now) {
  for (size_t i = 0; i < steps; ++i) {
    bool tokens_done = false;
    if (Token* token = tokens.StepExpired(now, &tokens_done); token != nullptr) {
      if (token->present < token->reserved) {
        counters->expired_tokens.fetch_add(1, std::memory_order_relaxed);
      }
      closing_.push_back(token);
    }
    Lease* lease = leases.NextDue(now);
    if (lease == nullptr) {
      if (tokens_done) return false;
      continue;
    }
    if (!lease->ended) {
      ExpireShares(lease, now);
      if (lease->Complete(now)) {
        bool any_ended = false;
        for (const Lease::Reader& reader : lease->readers) {
          if (reader.share == Lease::Share::kEnded) any_ended = true;
        }
        EndLease(lease, any_ended, now);
      } else {
        leases.Reorder(lease);
      }
    } else if (lease->given_back) {
      leases.Erase(lease);
    } else {
      lease->forgets = now + lease->ttl;
      leases.Reorder(lease);
    }
  }
  return true;
}

// A block in host memory has its own time, also where an older copy is elsewhere.
void StoreState::Expire(const ParentId& block, int64_t now_unix_ms) {
  BlockEntry* entry = index.Find(block.partition, block.key);
  const auto is_due = [now_unix_ms](int64_t at) { return at != 0 && at <= now_unix_ms; };
  if (entry != nullptr && is_due(entry->retention.expires_unix_ms)) {
    Remove(entry, RemovalReason::kExpired);
  } else {
    const DiskHandle on_device = device.Find(block.partition, block.key);
    const bool device_due = on_device != 0 && is_due(device.index.At(on_device).expires_unix_ms);
    const DiskHandle on_disk = disk.enabled ? disk.index.Find(block.partition, block.key) : 0;
    const bool disk_due = on_disk != 0 && is_due(disk.index.At(on_disk).expires_unix_ms);
    CAIRN_CHECK(device_due || disk_due);
    if (device_due) RemoveFromDevice(on_device, RemovalReason::kExpired);
    if (disk_due) RemoveFromDisk(on_disk, RemovalReason::kExpired);
  }
  counters->expired_blocks.fetch_add(1, std::memory_order_relaxed);
}

void StoreState::EndPriority(const ParentId& block, int64_t now_unix_ms) {
  BlockEntry* entry = index.Find(block.partition, block.key);
  CAIRN_CHECK(entry != nullptr && entry->retention.priority_until_unix_ms <= now_unix_ms);
  entry->retention.priority = kPriorityDefault;
  entry->retention.priority_until_unix_ms = 0;
  slots.PriorityChanged(entry);
}

bool StoreState::StepRetention(size_t steps, int64_t now_unix_ms) {
  for (size_t i = 0; i < steps; ++i) {
    if (std::optional<ParentId> block = expiries.TakeDue(now_unix_ms); block.has_value()) {
      Expire(*block, now_unix_ms);
    } else if (block = priorities.TakeDue(now_unix_ms); block.has_value()) {
      EndPriority(*block, now_unix_ms);
    } else if (block = stays.TakeDue(now_unix_ms); block.has_value()) {
      EndStay(index.Find(block->partition, block->key));
    } else {
      return false;
    }
  }
  return true;
}

void StoreState::QuotasChanged() {
  shrinking_.clear();
  for (TenantIndex tenant = 1; tenant <= ledger.tenant_count(); ++tenant) {
    if (ledger.ExcessOf(tenant) > 0) shrinking_.push_back(tenant);
    if (ledger.StaysExcessOf(tenant) > 0) stays_over_.emplace();
  }
}

bool StoreState::StepShrink(size_t steps) {
  for (size_t i = 0; i < steps && !shrinking_.empty(); ++i) {
    const TenantIndex tenant = shrinking_.front();
    if (ledger.ExcessOf(tenant) == 0) {
      shrinking_.pop_front();
      continue;
    }
    const std::optional<SlotSpace::Victim> victim = slots.VictimElsewhere(
        nullptr, [tenant](const SlotClass& slot_class) { return slot_class.tenant == tenant; });
    if (!victim.has_value()) {
      // All of it is in use: the next tick begins with another.
      shrinking_.pop_front();
      shrinking_.push_back(tenant);
      return false;
    }
    counters->shrunk_blocks.fetch_add(1, std::memory_order_relaxed);
    Evict(victim->entry);
  }
  return !shrinking_.empty();
}

}  // namespace cairn::node
