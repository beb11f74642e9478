#include "cache_node/spill/file_reclaimer.h"

#include <utility>

#include "cache_node/spill/block_loader.h"
#include "common/base/give_way.h"

namespace cairn::node {

bool FileReclaimer::Step(absl::Time wall) {
  const DiskTier::Stats stats = tier_->GetStats();
  if (stats.health == DiskTier::Health::kFailing || !DropLeft()) return false;
  const bool short_of_room = stats.health == DiskTier::Health::kFull ||
                             stats.bytes_used + options_.headroom_bytes > stats.bytes_max;
  if (!short_of_room) return false;
  const std::optional<ReclaimTask> task = store_->TakeReclaim();
  if (!task.has_value()) return false;
  if (!task->moves.empty()) Move(*task, wall);
  if (tier_->GetStats().health == DiskTier::Health::kFailing) {
    store_->AbandonReclaim(task->file);
    return false;
  }
  store_->FinishReclaim(task->file);
  left_.push_back(task->file);
  return DropLeft();
}

bool FileReclaimer::DropLeft() {
  while (!left_.empty()) {
    if (!tier_->DropFile(left_.back()).ok()) return false;
    left_.pop_back();
  }
  return true;
}

void FileReclaimer::Move(const ReclaimTask& task, absl::Time wall) {
  absl::StatusOr<std::unique_ptr<DiskFileBuilder>> file = tier_->StartFile();
  absl::Status status = file.status();
  std::vector<PlacedBlock> placed;
  std::vector<uint64_t> left;
  for (const MoveTask& move : task.moves) {
    const size_t before = placed.size();
    if (status.ok()) status = MoveBlock(move, file->get(), wall, &placed);
    if (placed.size() == before) left.push_back(move.write.id);
  }
  uint64_t number = 0;
  uint64_t bytes = 0;
  if (status.ok() && !placed.empty()) {
    number = (*file)->file();
    bytes = (*file)->bytes();
    const std::vector<DiskPlace> dead = store_->PlaceWrites(placed);
    if (!dead.empty()) status = tier_->MarkDead(dead);
    if (status.ok()) status = (*file)->Finish();
  }
  if (status.ok() && !placed.empty()) {
    store_->FinishWrites(number, bytes, placed);
  } else {
    for (const PlacedBlock& block : placed) left.push_back(block.id);
  }
  store_->AbandonWrites(left);
}

// A record that cannot be read is left behind; an error is the file's.
absl::Status FileReclaimer::MoveBlock(const MoveTask& move, DiskFileBuilder* file, absl::Time wall,
                                      std::vector<PlacedBlock>* placed) {
  // Nothing of the block before, which was perhaps another tenant's.
  scratch_.assign(move.write.block.payload_bytes, 0);
  LoadTask source;
  source.place = move.from;
  source.block = move.write.block;
  source.block.sequence = move.old_sequence;
  source.scope = move.write.scope;
  source.map = move.write.map;
  source.destination = absl::MakeSpan(scratch_);
  DiskRecordFields fields;
  absl::Status read = tier_->Read(move.from, source.block.key, source.destination, &fields);
  GiveWay();
  if (read.ok()) read = VerifyRecord(source, fields);
  if (absl::IsDataLoss(read)) store_->QuarantineMove(move);
  if (!read.ok()) return absl::OkStatus();
  GiveWay();
  DiskRecord record;
  record.block = move.write.block;
  record.block.expires_unix_ms = fields.block.expires_unix_ms;
  record.block.priority = fields.block.priority;
  record.block.provenance = fields.block.provenance;
  record.scope = move.write.scope.get();
  record.writer = options_.writer;
  record.written_unix_ms = absl::ToUnixMillis(wall);
  record.tokens = fields.tokens;
  record.extra = fields.extra;
  record.digests = fields.digests;
  record.payload = scratch_;
  const absl::StatusOr<DiskPlace> place = file->Add(record);
  if (!place.ok()) return place.status();
  placed->push_back({move.write.id, *place});
  return absl::OkStatus();
}

}  // namespace cairn::node
