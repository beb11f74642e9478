#include "cache_node/store/in_place_operations.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn::node {
namespace {

constexpr char kLeaseUnusable[] = "lease unknown, expired, ended or another tenant's";

Lease* FindLease(const StoreState& state, absl::string_view tenant, const LeaseId& id,
                 absl::Time now) {
  const TenantIndex index = state.ledger.Find(tenant);
  return index == 0 ? nullptr : state.leases.Find(id, index, now);
}

InPlaceBlock PlaceOf(const HostMemory& memory, const BlockEntry& entry) {
  InPlaceBlock block;
  block.state = BlockState::kHost;
  block.segment_index = entry.slot.segment;
  block.segment_id = memory.Info(entry.slot.segment).id;
  block.lendable = memory.CanLend(block.segment_index, block.segment_id);
  block.slot = entry.slot.slot;
  block.bytes = entry.block_bytes();
  block.generation = memory.Generation(entry.slot);
  const size_t segments = entry.map->segment_count();
  block.digests.assign(entry.digests.get(), entry.digests.get() + segments);
  for (const PayloadMap::Part& part : entry.map->parts()) {
    if (entry.SegmentPresent(part.first_segment)) continue;
    for (uint32_t layer = 0; layer < part.layers; ++layer) {
      const size_t segment = part.first_segment + layer;
      block.digests[segment] = 0;
      block.absent.push_back(static_cast<uint32_t>(segment));
    }
  }
  return block;
}

}  // namespace

absl::StatusOr<InPlaceAnswer> ReadShareInPlace(StoreState* state, absl::string_view tenant,
                                               const LeaseId& id, uint32_t reader,
                                               absl::Span<const BlockKey> keys, size_t digests_max,
                                               bool hold, absl::Time now) {
  Lease* lease = FindLease(*state, tenant, id, now);
  if (lease == nullptr) return absl::AbortedError(kLeaseUnusable);
  if (hold && reader >= lease->readers.size()) {
    return absl::InvalidArgumentError(absl::StrCat("reader ", reader, " of a lease of ",
                                                   lease->readers.size(), " readers, from 0"));
  }
  const bool over = hold ? lease->ended || !lease->Active(reader, now) : lease->Complete(now);
  if (over) return absl::AbortedError(kLeaseUnusable);
  InPlaceAnswer answer;
  size_t digests = 0;
  for (const BlockKey& key : keys) {
    const BlockEntry* entry = lease->Find(key);
    const bool readable =
        entry != nullptr && entry->life == BlockEntry::Life::kPresent && entry->Readable();
    if (!readable) {
      answer.blocks.push_back({.state = BlockState::kNotLeased});
      continue;
    }
    digests += entry->map->segment_count();
    if (digests > digests_max && !answer.blocks.empty()) break;
    answer.blocks.push_back(PlaceOf(state->slots.memory(), *entry));
  }
  if (!hold) return answer;
  lease->readers[reader].expires = absl::InfiniteFuture();
  state->leases.Reorder(lease);
  return answer;
}

void CloseShare(StoreState* state, absl::string_view tenant, const LeaseId& id, uint32_t reader,
                absl::Time now) {
  Lease* lease = FindLease(*state, tenant, id, now);
  if (lease == nullptr || lease->ended || reader >= lease->readers.size()) return;
  Lease::Reader& share = lease->readers[reader];
  if (share.share != Lease::Share::kActive) return;
  share.share = Lease::Share::kExpired;
  state->settled = true;
  if (!lease->Complete(now)) {
    state->leases.Reorder(lease);
    return;
  }
  const bool any_ended =
      std::any_of(lease->readers.begin(), lease->readers.end(),
                  [](const Lease::Reader& one) { return one.share == Lease::Share::kEnded; });
  state->EndLease(lease, any_ended, now);
}

}  // namespace cairn::node
