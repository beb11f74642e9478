#include "cache_node/spill/block_loader.h"

#include "absl/strings/str_cat.h"
#include "common/base/hex.h"
#include "common/identity/segment_digest.h"

namespace cairn::node {
namespace {

absl::Status Damaged(const LoadTask& task, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("block ", ToHex(task.block.key.view()), ", record ",
                                          task.place.slot, " of file ", task.place.file, ": ",
                                          what));
}

absl::Status VerifySegments(const LoadTask& task, const DiskRecordFields& fields) {
  for (const PayloadMap::Part& part : task.map->parts()) {
    if (!RecordHasPart(part, fields.digests)) continue;
    for (size_t i = part.first_segment; i < part.first_segment + part.layers; ++i) {
      const absl::Span<const uint8_t> bytes =
          task.destination.subspan(task.map->SegmentOffset(i), task.map->SegmentBytesAt(i));
      if (SegmentDigest(task.block.key, task.map->SegmentAt(i), bytes) == fields.digests[i]) {
        continue;
      }
      return Damaged(task, absl::StrCat("segment ", i, " has another digest"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyRecord(const LoadTask& task, const DiskRecordFields& fields) {
  const DiskBlock& block = fields.block;
  if (block.key != task.block.key) return Damaged(task, "it is of another key");
  if (block.parent != task.block.parent || block.parent_shared != task.block.parent_shared ||
      block.depth != task.block.depth) {
    return Damaged(task, "it has another parent");
  }
  if (block.sequence != task.block.sequence) return Damaged(task, "it has another sequence");
  if (block.payload_bytes != task.map->block_bytes()) return Damaged(task, "it has another size");
  if (!(fields.scope == *task.scope)) return Damaged(task, "it is of another scope");
  if (!fields.tokens.empty() && fields.tokens.size() != task.map->layout().block_tokens) {
    return Damaged(task, absl::StrCat("it has ", fields.tokens.size(), " tokens"));
  }
  if (fields.digests.size() != task.map->segment_count()) {
    return Damaged(task, absl::StrCat("it has ", fields.digests.size(), " segments"));
  }
  return VerifySegments(task, fields);
}

bool BlockLoader::Step() {
  const std::optional<LoadTask> task = store_->TakeLoad();
  if (!task.has_value()) return false;
  DiskRecordFields fields;
  const absl::Status loaded = Load(*task, &fields);
  store_->FinishLoad(*task, loaded, fields);
  if (absl::IsDataLoss(loaded) && !tier_->MarkDead({task->place}).ok()) store_->NoteMarkFailed();
  return true;
}

absl::Status BlockLoader::Load(const LoadTask& task, DiskRecordFields* fields) {
  absl::Status read = tier_->Read(task.place, task.block.key, task.destination, fields);
  return read.ok() ? VerifyRecord(task, *fields) : read;
}

}  // namespace cairn::node
