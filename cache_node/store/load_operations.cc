#include "cache_node/store/load_operations.h"

#include <algorithm>

#include "common/base/check.h"

namespace cairn::node {
namespace {

// The block leaves the index of the host, and those who wait for it learn it.
void Fail(StoreState* state, BlockEntry* entry) {
  state->Remove(entry, RemovalReason::kNone);
  state->settled = true;
}

}  // namespace

bool RecordHasPart(const PayloadMap::Part& part, absl::Span<const uint64_t> digests) {
  const absl::Span<const uint64_t> own = digests.subspan(part.first_segment, part.layers);
  return part.required || std::any_of(own.begin(), own.end(), [](uint64_t d) { return d != 0; });
}

void LoadOperations::TakeIn(BlockEntry* entry, const DiskRecordFields& fields) {
  const PayloadMap& map = *entry->map;
  CAIRN_CHECK(fields.digests.size() == map.segment_count());
  entry->provenance = fields.block.provenance;
  if (fields.tokens.empty()) {
    entry->tokens.reset();
  } else {
    CAIRN_CHECK(fields.tokens.size() == map.layout().block_tokens);
    std::copy(fields.tokens.begin(), fields.tokens.end(), entry->tokens.get());
  }
  for (size_t i = 0; i < map.parts().size(); ++i) {
    const PayloadMap::Part& part = map.parts()[i];
    if (!RecordHasPart(part, fields.digests)) continue;
    for (size_t segment = part.first_segment; segment < part.first_segment + part.layers;
         ++segment) {
      entry->digests[segment] = fields.digests[segment];
      entry->segments[segment] = SegmentState::kCommitted;
    }
    entry->layers_committed[i].store(part.layers, std::memory_order_release);
    if (part.required) --entry->required_parts_missing;
  }
}

std::optional<LoadTask> LoadOperations::Take(StoreState* state) {
  DiskState& disk = state->disk;
  while (BlockEntry* entry = disk.load_queue.front()) {
    if (entry->disk == 0) {  // Its file left before it was read.
      disk.load_queue.Remove(entry);
      state->counters->loads_failed.fetch_add(1, std::memory_order_relaxed);
      Fail(state, entry);
      continue;
    }
    disk.load_queue.Remove(entry);
    state->Claim(entry);
    LoadTask task;
    task.id = ++disk.last_load_id;
    disk.taken_loads.emplace(task.id, entry);
    task.place = disk.index.PlaceOf(entry->disk);
    task.block = disk.index.BlockOf(entry->disk, entry->epoch);
    task.scope = disk.index.scopes().At(disk.index.At(entry->disk).scope).scope;
    task.map = entry->map;
    task.destination = state->slots.Bytes(*entry);
    return task;
  }
  return std::nullopt;
}

void LoadOperations::Finish(StoreState* state, const LoadTask& task, const absl::Status& status,
                            const DiskRecordFields& fields, absl::Time now) {
  DiskState& disk = state->disk;
  auto taken = disk.taken_loads.find(task.id);
  CAIRN_CHECK_MSG(taken != disk.taken_loads.end(), "a load ends that was not taken");
  BlockEntry* entry = taken->second;
  disk.taken_loads.erase(taken);
  const bool wanted = entry->life == BlockEntry::Life::kLoading && entry->Readable();
  const bool same_place = entry->disk != 0 && disk.index.PlaceOf(entry->disk) == task.place;
  if (!wanted) {
    if (entry->life == BlockEntry::Life::kLoading) Fail(state, entry);
  } else if (status.ok()) {
    TakeIn(entry, fields);
    state->PublishLoaded(entry);
  } else if (!same_place && entry->disk != 0) {
    disk.load_queue.PushBack(entry);  // It was moved while it was read.
    state->loads_queued = true;
  } else {
    const bool damaged = absl::IsDataLoss(status);
    (damaged ? state->counters->loads_damaged : state->counters->loads_failed)
        .fetch_add(1, std::memory_order_relaxed);
    if (damaged) state->counters->quarantined_blocks.fetch_add(1, std::memory_order_relaxed);
    if (same_place && damaged) {
      state->RemoveFromDisk(entry->disk, RemovalReason::kQuarantined);
    } else if (same_place && absl::IsNotFound(status)) {
      state->RemoveFromDisk(entry->disk, RemovalReason::kEvicted);
    } else if (same_place) {
      disk.failed_loads.Add({entry->partition, entry->key}, now + disk.options.load_retry_after);
    }
    Fail(state, entry);
  }
  state->Unclaim(entry);
}

}  // namespace cairn::node
