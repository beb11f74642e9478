#include "cache_node/spill/spill_writer.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace cairn::node {

SpillWriter::SpillWriter(const Options& options, DiskTier* tier, BlockStore* store)
    : options_(options), tier_(tier), store_(store) {}

SpillWriter::~SpillWriter() { GiveUp(); }

absl::Time SpillWriter::due() const {
  return tasks_.empty() ? absl::InfiniteFuture() : opened_ + options_.file_age_max;
}

// False: a name could not be made durable, so blocks must wait.
bool SpillWriter::SaveNamespaces() {
  for (const NamespaceTask& task : store_->UnsavedNamespaces(kNamespacesPerStep)) {
    if (!tier_->PutNamespace(task.known).ok()) return false;
    const std::optional<DiskTier::Fence> fence = store_->NamespaceSaved(task);
    if (fence.has_value() && !tier_->PutFence(*fence).ok()) return false;
  }
  return true;
}

bool SpillWriter::Step(absl::Time steady, absl::Time wall) {
  if (tier_->GetStats().health != DiskTier::Health::kServing) {
    GiveUp();
    return false;
  }
  const uint64_t so_far = file_ == nullptr ? 0 : file_->bytes();
  const bool full = so_far >= options_.file_bytes_max;
  std::vector<SpillTask> taken;
  if (!full) taken = store_->TakeSpills(kBlocksPerTake, options_.file_bytes_max - so_far);
  if (taken.empty()) {
    if (tasks_.empty() || !(full || steady >= due() || store_->SpillsWait())) return false;
    Finish();
    return true;
  }
  if (tasks_.empty()) opened_ = steady;
  absl::Status status = SaveNamespaces()
                            ? absl::OkStatus()
                            : absl::UnavailableError("the ledger could not be written");
  if (status.ok() && file_ == nullptr) {
    absl::StatusOr<std::unique_ptr<DiskFileBuilder>> started = tier_->StartFile();
    status = started.status();
    if (started.ok()) file_ = *std::move(started);
  }
  for (SpillTask& task : taken) {
    if (status.ok()) status = AddBlock(task, wall);
    tasks_.push_back(std::move(task));
  }
  if (!status.ok()) GiveUp();
  return status.ok();
}

absl::Status SpillWriter::AddBlock(const SpillTask& task, absl::Time wall) {
  std::vector<uint64_t> digests;
  DiskRecord record;
  record.block = task.write.block;
  record.scope = task.write.scope.get();
  record.writer = options_.writer;
  record.written_unix_ms = absl::ToUnixMillis(wall);
  record.tokens = task.tokens;
  record.payload = PresentBytes(task, &digests);
  record.digests = digests;
  const absl::StatusOr<DiskPlace> place = file_->Add(record);
  if (!place.ok()) return place.status();
  placed_.push_back({task.write.id, *place});
  return absl::OkStatus();
}

absl::Span<const uint8_t> SpillWriter::PresentBytes(const SpillTask& task,
                                                    std::vector<uint64_t>* digests) {
  const PayloadMap& map = *task.write.map;
  digests->assign(map.segment_count(), 0);
  bool whole = true;
  for (const PayloadMap::Part& part : map.parts()) {
    if (!task.pin.SegmentPresent(part.first_segment)) {
      whole = false;
      continue;
    }
    for (size_t i = part.first_segment; i < part.first_segment + part.layers; ++i) {
      (*digests)[i] = task.pin.digests()[i];
    }
  }
  if (whole) return task.pin.bytes();
  // A part that is not there may be written just now, and what its slot held before is another
  // block's.
  scratch_.assign(map.block_bytes(), 0);
  for (const PayloadMap::Part& part : map.parts()) {
    if (!RecordHasPart(part, *digests)) continue;
    const absl::Span<const uint8_t> bytes = task.pin.bytes().subspan(part.offset, part.bytes);
    std::copy(bytes.begin(), bytes.end(), scratch_.begin() + static_cast<ptrdiff_t>(part.offset));
  }
  return absl::MakeConstSpan(scratch_).subspan(0, map.block_bytes());
}

void SpillWriter::Flush() {
  if (!tasks_.empty()) Finish();
}

void SpillWriter::Finish() {
  if (placed_.empty()) return GiveUp();
  const std::vector<DiskPlace> dead = store_->PlaceWrites(placed_);
  absl::Status status = dead.empty() ? absl::OkStatus() : tier_->MarkDead(dead);
  const uint64_t file = file_->file();
  const uint64_t bytes = file_->bytes();
  if (status.ok()) status = file_->Finish();
  if (!status.ok()) return GiveUp();
  store_->FinishWrites(file, bytes, placed_);
  file_.reset();
  placed_.clear();
  tasks_.clear();
}

void SpillWriter::GiveUp() {
  file_.reset();
  placed_.clear();
  std::vector<uint64_t> ids;
  for (const SpillTask& task : tasks_) ids.push_back(task.write.id);
  if (!ids.empty()) store_->AbandonWrites(ids);
  tasks_.clear();
}

}  // namespace cairn::node
