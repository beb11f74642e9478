#include "cache_node/store/lease_operations.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cache_node/store/lookup_operation.h"
#include "common/base/check.h"

namespace cairn::node {
namespace {

constexpr char kLeaseUnusable[] = "lease unknown, expired, ended or another tenant's";

Lease* FindLease(const StoreState& state, absl::string_view tenant, const LeaseId& id,
                 absl::Time now) {
  const TenantIndex index = state.ledger.Find(tenant);
  return index == 0 ? nullptr : state.leases.Find(id, index, now);
}

absl::Status CheckReader(const Lease& lease, uint32_t reader) {
  if (reader < lease.readers.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "reader ", reader, " of a lease of ", lease.readers.size(), " readers, which count from 0"));
}

}  // namespace

absl::StatusOr<LeaseStatus> GetLeaseStatus(const StoreState& state, absl::string_view tenant,
                                           const LeaseId& id, absl::Time now) {
  const Lease* lease = FindLease(state, tenant, id, now);
  if (lease == nullptr) return absl::AbortedError(kLeaseUnusable);
  return lease->StatusAt(now);
}

absl::StatusOr<absl::Duration> RenewShare(StoreState* state, absl::string_view tenant,
                                          const LeaseId& id, uint32_t reader, absl::Duration ttl,
                                          absl::Time now) {
  Lease* lease = FindLease(*state, tenant, id, now);
  if (lease == nullptr) return absl::AbortedError(kLeaseUnusable);
  if (absl::Status status = CheckReader(*lease, reader); !status.ok()) return status;
  if (lease->ended || !lease->Active(reader, now)) return absl::AbortedError(kLeaseUnusable);
  const absl::Duration granted =
      ttl > absl::ZeroDuration() ? std::min(ttl, state->options.lease_ttl_max) : lease->ttl;
  absl::Time& expires = lease->readers[reader].expires;
  expires = std::max(expires, now + granted);
  return granted;
}

absl::StatusOr<LeaseStatus> EndShare(StoreState* state, absl::string_view tenant, const LeaseId& id,
                                     uint32_t reader, absl::Span<const uint32_t> usable_blocks,
                                     absl::Time now) {
  Lease* lease = FindLease(*state, tenant, id, now);
  if (lease == nullptr) return absl::AbortedError(kLeaseUnusable);
  if (absl::Status status = CheckReader(*lease, reader); !status.ok()) return status;
  if (usable_blocks.size() != lease->leased.size()) {
    return absl::InvalidArgumentError(absl::StrCat("usable_blocks has ", usable_blocks.size(),
                                                   " numbers for ", lease->leased.size(),
                                                   " prompts: send one a prompt"));
  }
  for (size_t i = 0; i < usable_blocks.size(); ++i) {
    if (usable_blocks[i] <= lease->leased[i]) continue;
    return absl::InvalidArgumentError(absl::StrCat("usable_blocks[", i, "] is ", usable_blocks[i],
                                                   ", more than the ", lease->leased[i],
                                                   " blocks leased"));
  }
  Lease::Reader& share = lease->readers[reader];
  if (share.share == Lease::Share::kEnded || lease->revoked) return lease->StatusAt(now);
  if (lease->ended || !lease->Active(reader, now)) return absl::AbortedError(kLeaseUnusable);
  share.share = Lease::Share::kEnded;
  for (size_t i = 0; i < usable_blocks.size(); ++i) {
    lease->usable[i] = std::min(lease->usable[i], usable_blocks[i]);
  }
  state->settled = true;
  if (lease->Complete(now)) state->EndLease(lease, /*used=*/true, now);
  return lease->StatusAt(now);
}

absl::StatusOr<BlockEntry*> FindReadable(const StoreState& state, absl::string_view tenant,
                                         const Fingerprint& fingerprint,
                                         const std::optional<LeaseId>& lease_id,
                                         const BlockKey& key, absl::Time now, BlockAnswer* answer) {
  const LookupQuery query{.prompts = {PromptQuery{.keys = {key}}}};
  LookupOperation lookup(tenant, fingerprint, query);
  if (!lease_id.has_value()) {
    BlockEntry* entry = lookup.FindOne(state, now);
    *answer = lookup.FirstAnswer();
    return entry;
  }
  const Lease* lease = FindLease(state, tenant, *lease_id, now);
  if (lease == nullptr || lease->Complete(now)) return absl::AbortedError(kLeaseUnusable);
  BlockEntry* entry = lease->name_space->fingerprint == fingerprint ? lease->Find(key) : nullptr;
  if (entry != nullptr && entry->life == BlockEntry::Life::kPresent && entry->Readable()) {
    *answer = {.state = BlockState::kHost};
    return entry;
  }
  lookup.FindOne(state, now);
  *answer = lookup.FirstAnswer();
  if (answer->state == BlockState::kHost) answer->state = BlockState::kNotLeased;
  return nullptr;
}

absl::StatusOr<LeasedRun> FindLeasedRun(const StoreState& state, absl::string_view tenant,
                                        const Fingerprint& fingerprint, const LeaseId& id,
                                        uint32_t prompt, uint32_t first_block, size_t count_max,
                                        absl::Time now) {
  const Lease* lease = FindLease(state, tenant, id, now);
  if (lease == nullptr || lease->Complete(now) || lease->name_space->fingerprint != fingerprint) {
    return absl::AbortedError(kLeaseUnusable);
  }
  if (prompt >= lease->places.size()) {
    return absl::InvalidArgumentError(absl::StrCat("prompt ", prompt, " of a lease of ",
                                                   lease->places.size(),
                                                   " prompts, which count from 0"));
  }
  const std::vector<uint32_t>& places = lease->places[prompt];
  LeasedRun run;
  for (size_t at = first_block; at < places.size() && run.entries.size() < count_max; ++at) {
    BlockEntry* entry = lease->links[places[at]].entry;
    if (entry == nullptr || entry->life != BlockEntry::Life::kPresent || !entry->Readable()) {
      run.ends = true;
      return run;
    }
    run.entries.push_back(entry);
  }
  run.ends = first_block + run.entries.size() >= places.size();
  return run;
}

}  // namespace cairn::node
