#include "cache_node/store/lease_table.h"

#include <algorithm>

#include "cache_node/store/namespace_table.h"
#include "common/base/check.h"

namespace cairn::node {

bool Lease::Complete(absl::Time now) const {
  if (ended) return true;
  for (size_t i = 0; i < readers.size(); ++i) {
    if (Active(i, now)) return false;
  }
  return true;
}

LeaseStatus Lease::StatusAt(absl::Time now) const {
  LeaseStatus status;
  if (name_space != nullptr) status.fingerprint = name_space->fingerprint;
  status.readers = static_cast<uint32_t>(readers.size());
  status.usable_blocks = usable;
  bool zero = revoked;
  for (size_t i = 0; i < readers.size(); ++i) {
    if (readers[i].share == Share::kActive && !revoked && now < readers[i].expires) continue;
    ++status.readers_ended;
    if (readers[i].share != Share::kEnded) zero = true;
  }
  if (zero) std::fill(status.usable_blocks.begin(), status.usable_blocks.end(), 0);
  status.complete = status.readers_ended == status.readers;
  return status;
}

BlockEntry* Lease::Find(const BlockKey& key) const {
  auto it = blocks.find(key);
  return it == blocks.end() ? nullptr : links[it->second].entry;
}

absl::Time Lease::NextExpiry() const {
  absl::Time next = absl::InfiniteFuture();
  for (const Reader& reader : readers) {
    if (reader.share == Share::kActive) next = std::min(next, reader.expires);
  }
  return next;
}

bool LeaseTable::Fits(size_t readers) const {
  return leases_.size() < leases_max_ && shares_ + readers <= kSharesMax;
}

bool LeaseTable::MakeRoom(size_t readers) {
  while (!Fits(readers) && !given_back_.empty()) {
    auto it = leases_.find(given_back_.begin()->second);
    CAIRN_CHECK(it != leases_.end());
    Erase(it->second.get());
  }
  return Fits(readers);
}

Lease* LeaseTable::Add(std::unique_ptr<Lease> lease) {
  CAIRN_CHECK(!lease->readers.empty() && Fits(lease->readers.size()));
  Lease* added = lease.get();
  shares_ += added->readers.size();
  ++open_;
  added->due = added->NextExpiry();
  CAIRN_CHECK(leases_.emplace(added->id, std::move(lease)).second);
  CAIRN_CHECK(due_.emplace(added->due, added->id).second);
  return added;
}

Lease* LeaseTable::Find(const LeaseId& id, TenantIndex tenant, absl::Time now) const {
  auto it = leases_.find(id);
  if (it == leases_.end() || it->second->tenant != tenant) return nullptr;
  Lease* lease = it->second.get();
  return lease->ended && now >= lease->forgets ? nullptr : lease;
}

void LeaseTable::MarkEnded(Lease* lease, absl::Time forgets) {
  CAIRN_CHECK(!lease->ended && open_ > 0);
  --open_;
  lease->ended = true;
  lease->forgets = forgets;
  Reorder(lease);
}

void LeaseTable::Reorder(Lease* lease) {
  CAIRN_CHECK(due_.erase({lease->due, lease->id}) == 1);
  lease->due = lease->ended ? lease->forgets : lease->NextExpiry();
  CAIRN_CHECK(due_.emplace(lease->due, lease->id).second);
}

void LeaseTable::GivenBack(Lease* lease) {
  CAIRN_CHECK(lease->ended && !lease->given_back && lease->links.empty() && lease->blocks.empty());
  CAIRN_CHECK(lease->due == lease->forgets);
  lease->given_back = true;
  // A container that was emptied keeps its memory.
  lease->links = {};
  lease->blocks = {};
  lease->places = {};
  CAIRN_CHECK(given_back_.emplace(lease->forgets, lease->id).second);
}

Lease* LeaseTable::NextDue(absl::Time now) const {
  if (due_.empty() || due_.begin()->first > now) return nullptr;
  auto it = leases_.find(due_.begin()->second);
  CAIRN_CHECK(it != leases_.end());
  return it->second.get();
}

void LeaseTable::Erase(Lease* lease) {
  CAIRN_CHECK(lease->given_back);
  CAIRN_CHECK(due_.erase({lease->due, lease->id}) == 1);
  CAIRN_CHECK(given_back_.erase({lease->forgets, lease->id}) == 1);
  CAIRN_CHECK(shares_ >= lease->readers.size());
  shares_ -= lease->readers.size();
  CAIRN_CHECK(leases_.erase(LeaseId(lease->id)) == 1);
}

}  // namespace cairn::node
