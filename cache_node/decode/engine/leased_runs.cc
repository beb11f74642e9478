#include "cache_node/decode/engine/leased_runs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn::node {

void LeasedRuns::Begin(absl::Time now) {
  ++round_;
  now_ = now;
}

absl::StatusOr<SlotRun> LeasedRuns::Find(absl::string_view tenant, const Fingerprint& fingerprint,
                                         const LeasedTarget& target, const AttendShape& shape) {
  const Key key{std::string(tenant), fingerprint, target.lease, target.prompt};
  const absl::StatusOr<Run*> found = FindRun(key);
  if (!found.ok()) return found.status();
  const std::vector<const std::byte*>& slots = (*found)->slots;
  const size_t wanted = std::max<size_t>(target.blocks, 1);
  if (target.first_block >= slots.size() || slots.size() - target.first_block < wanted) {
    return absl::AbortedError(absl::StrCat("the lease covers ", slots.size(), " blocks of prompt ",
                                           target.prompt, ", not ", wanted, " from block ",
                                           target.first_block, " on; look up anew"));
  }
  SlotRun run;
  run.slots = absl::MakeConstSpan(slots).subspan(target.first_block,
                                                 target.blocks == 0 ? slots.size() : target.blocks);
  absl::Status stored =
      CheckStored(absl::MakeConstSpan((*found)->pins).subspan(target.first_block, run.slots.size()),
                  target.first_block, shape);
  if (!stored.ok()) return stored;
  run.first_position = uint64_t{target.first_block} * shape.kv.page_tokens;
  run.tokens = run.slots.size() * uint64_t{shape.kv.page_tokens};
  return run;
}

absl::Status LeasedRuns::Recheck(absl::string_view tenant, const Fingerprint& fingerprint,
                                 const LeasedTarget& target, const SlotRun& run) {
  const auto it = runs_.find(Key{std::string(tenant), fingerprint, target.lease, target.prompt});
  CAIRN_CHECK(it != runs_.end() && it->second.round == round_);
  if (it->second.revocations == Revocations()) return absl::OkStatus();
  for (size_t i = 0; i < run.slots.size(); ++i) {
    if (it->second.pins[target.first_block + i].readable()) continue;
    return absl::AbortedError("a block of the lease was removed meanwhile; look up anew");
  }
  return absl::OkStatus();
}

absl::Status LeasedRuns::CheckStored(absl::Span<const BlockPin> pins, uint32_t first_block,
                                     const AttendShape& shape) {
  for (uint32_t i = 0; i < shape.slices; ++i) {
    const PayloadMap::Part& part =
        shape.map->parts()[*shape.map->FindPart(shape.group, shape.first_slice + i)];
    if (part.required) return absl::OkStatus();  // As are all of its group: each block has them.
    for (size_t block = 0; block < pins.size(); ++block) {
      if (pins[block].SegmentPresent(part.first_segment)) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("group ", part.group, ", slice ", part.slice, " of block ",
                       first_block + block, " is not stored here: ask for the blocks before it"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<LeasedRuns::Run*> LeasedRuns::FindRun(const Key& key) {
  auto it = runs_.find(key);
  if (it != runs_.end()) {
    Run& run = it->second;
    if (run.round == round_) return &run;
    absl::Status status = CheckLease(key);
    const bool same = run.revocations == Revocations();
    if (!status.ok() || !same) Drop(key);
    if (!status.ok()) return status;
    if (same) {
      run.round = round_;
      run.used = now_;
      by_age_.splice(by_age_.end(), by_age_, run.age);
      return &run;
    }
  }
  Run run;
  if (absl::Status status = Fill(key, &run); !status.ok()) return status;
  run.round = round_;
  run.used = now_;
  run.age = by_age_.insert(by_age_.end(), key);
  blocks_ += run.slots.size();
  it = runs_.emplace(key, std::move(run)).first;
  MakeRoom();
  if (runs_.size() > kRunsMax || blocks_ > kBlocksMax) {
    Drop(key);
    return absl::ResourceExhaustedError(
        absl::StrCat("blocks of leases that are read at once: over ", kBlocksMax, ", or ", kRunsMax,
                     " prompts; ask again"));
  }
  return &it->second;
}

absl::Status LeasedRuns::CheckLease(const Key& key) const {
  const absl::StatusOr<LeaseStatus> status = store_->GetLease(key.tenant, key.lease);
  if (!status.ok()) return status.status();
  return status->complete ? absl::AbortedError("the lease is over; look up anew")
                          : absl::OkStatus();
}

absl::Status LeasedRuns::Fill(const Key& key, Run* run) {
  run->revocations = Revocations();
  absl::StatusOr<std::vector<BlockPin>> pins =
      store_->LeasePins(key.tenant, key.fingerprint, key.lease, key.prompt, 0, kBlocksMax);
  if (!pins.ok()) return pins.status();
  run->pins = *std::move(pins);
  run->slots.reserve(run->pins.size());
  for (const BlockPin& pin : run->pins) {
    run->slots.push_back(reinterpret_cast<const std::byte*>(pin.bytes().data()));
  }
  return absl::OkStatus();
}

// What this round found stays.
void LeasedRuns::MakeRoom() {
  while ((runs_.size() > kRunsMax || blocks_ > kBlocksMax) &&
         runs_.at(by_age_.front()).round != round_) {
    Drop(Key(by_age_.front()));
  }
}

void LeasedRuns::Drop(const Key& key) {
  const auto it = runs_.find(key);
  CAIRN_CHECK(it != runs_.end());
  blocks_ -= it->second.slots.size();
  by_age_.erase(it->second.age);
  runs_.erase(it);
}

void LeasedRuns::Tick(absl::Time now) {
  std::vector<Key> over;
  for (const auto& [key, run] : runs_) {
    if (now - run.used > kKeptUnused || !CheckLease(key).ok() || run.revocations != Revocations()) {
      over.push_back(key);
    }
  }
  for (const Key& key : over) Drop(key);
}

}  // namespace cairn::node
