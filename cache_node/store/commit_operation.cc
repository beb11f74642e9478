#include "cache_node/store/commit_operation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_node/store/write_operations.h"
#include "common/base/check.h"
#include "common/wire/limits.h"

namespace cairn::node {
namespace {

// Segments looked at under one lock.
constexpr size_t kSegmentStepsPerLock = 16 * BlockStore::kStepsPerLock;

// Marks the run's segments committed, and counts them for their part.
void CommitSegments(BlockEntry* entry, size_t part_index, size_t first, size_t count) {
  const PayloadMap::Part& part = entry->map->parts()[part_index];
  uint32_t fresh = 0;
  for (size_t i = first; i < first + count; ++i) {
    if (entry->segments[i] == SegmentState::kCommitted) continue;
    CAIRN_CHECK(entry->segments[i] == SegmentState::kWritten);
    entry->segments[i] = SegmentState::kCommitted;
    ++fresh;
  }
  if (fresh == 0) return;
  // Readers take the part's digests once they see it whole.
  const uint32_t layers =
      entry->layers_committed[part_index].fetch_add(fresh, std::memory_order_release) + fresh;
  CAIRN_CHECK(layers <= part.layers);
  if (layers < part.layers || !part.required) return;
  CAIRN_CHECK(entry->required_parts_missing > 0);
  --entry->required_parts_missing;
}

}  // namespace

bool CommitOperation::Step(StoreState* state, absl::Time now) {
  const absl::StatusOr<Token*> usable =
      WriteOperations::UsableToken(*state, state->ledger.Find(tenant_), token_, now);
  if (!usable.ok()) {
    status_ = usable.status();
    return true;
  }
  Token* token = *usable;
  size_t steps = 0;
  for (; next_run_ < runs_.size(); ++next_run_) {
    if (steps >= kSegmentStepsPerLock) return false;
    absl::Status applied = Apply(state, token, runs_[next_run_], &steps);
    if (applied.ok()) continue;
    answer_.errors.emplace_back(static_cast<uint32_t>(next_run_), std::move(applied));
  }
  for (; next_block_ < token->blocks.size(); ++next_block_) {
    if (steps >= kSegmentStepsPerLock) return false;
    ++steps;
    const TokenBlock& block = token->blocks[next_block_];
    if (block.entry == nullptr || block.present) continue;
    ListMissing(*block.entry, next_block_, &steps);
    if (answer_.missing.size() >= kMissingRunsMax) break;
  }
  answer_.blocks_present = token->present;
  answer_.complete = token->present == token->reserved;
  return true;
}

absl::Status CommitOperation::Apply(StoreState* state, Token* token, const SegmentRun& run,
                                    size_t* steps) {
  *steps += 1 + run.digests.size();
  if (run.block >= token->blocks.size() || !token->blocks[run.block].reserved) {
    return absl::InvalidArgumentError(
        absl::StrCat("block ", run.block, " was not reserved by this token"));
  }
  const PayloadMap& map = token->name_space->map;
  const std::optional<size_t> part = map.FindPart(run.group, run.slice);
  if (!part.has_value() || run.digests.empty() || run.layer >= map.parts()[*part].layers ||
      run.digests.size() > map.parts()[*part].layers - run.layer) {
    return absl::InvalidArgumentError(absl::StrCat("group ", run.group, ", slice ", run.slice, ", ",
                                                   run.digests.size(), " layers from ", run.layer,
                                                   ": the layout has no such segments"));
  }
  const TokenBlock& block = token->blocks[run.block];
  if (block.entry == nullptr) {
    if (block.present) return absl::OkStatus();
    return absl::AbortedError(
        absl::StrCat("block ", run.block, " was removed while it was reserved"));
  }
  BlockEntry* entry = block.entry;
  const size_t first = map.parts()[*part].first_segment + run.layer;
  for (size_t i = 0; i < run.digests.size(); ++i) {
    const SegmentState segment = entry->segments[first + i];
    if (segment != SegmentState::kWritten && segment != SegmentState::kCommitted) {
      return absl::AbortedError(absl::StrCat("block ", run.block, ", group ", run.group, ", slice ",
                                             run.slice, ", layer ", run.layer + i,
                                             " is not written: write it first"));
    }
    if (entry->digests[first + i] != run.digests[i]) {
      return absl::AbortedError(
          absl::StrCat("block ", run.block, ", group ", run.group, ", slice ", run.slice,
                       ", layer ", run.layer + i, " was written with digest ",
                       absl::Hex(entry->digests[first + i], absl::kZeroPad16), ", not ",
                       absl::Hex(run.digests[i], absl::kZeroPad16)));
    }
  }
  CommitSegments(entry, *part, first, run.digests.size());
  if (entry->life == BlockEntry::Life::kReserved && entry->required_parts_missing == 0) {
    state->Publish(entry);
  }
  return absl::OkStatus();
}

void CommitOperation::ListMissing(const BlockEntry& entry, uint32_t block, size_t* steps) {
  for (const PayloadMap::Part& part : entry.map->parts()) {
    ++*steps;
    if (!part.required) continue;
    const size_t index = static_cast<size_t>(&part - entry.map->parts().data());
    if (entry.layers_committed[index].load(std::memory_order_relaxed) == part.layers) continue;
    *steps += part.layers;
    for (uint32_t layer = 0; layer < part.layers; ++layer) {
      if (entry.segments[part.first_segment + layer] == SegmentState::kCommitted) continue;
      uint32_t end = layer + 1;
      while (end < part.layers &&
             entry.segments[part.first_segment + end] != SegmentState::kCommitted) {
        ++end;
      }
      if (answer_.missing.size() >= kMissingRunsMax) return;
      answer_.missing.push_back({.block = block,
                                 .group = part.group,
                                 .slice = part.slice,
                                 .layer = layer,
                                 .layers = end - layer});
      layer = end;
    }
  }
}

absl::StatusOr<CommitAnswer> CommitOperation::Finish() {
  if (!status_.ok()) return status_;
  return std::move(answer_);
}

}  // namespace cairn::node
