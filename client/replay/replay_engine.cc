#include "client/replay/replay_engine.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/cpp/segment_buffers.h"
#include "client/cpp/synthetic_payload.h"
#include "common/base/check.h"

namespace cairn::replay {

ReplayEngine::ReplayEngine(const NamespaceHandle* name_space, ReplicaQueues* queues)
    : name_space_(name_space), queues_(queues), expected_(name_space->block_bytes()) {}

absl::Status ReplayEngine::Begin(const Prompt* prompt) {
  const uint64_t block_bytes = name_space_->block_bytes();
  const uint64_t blocks_max = kPromptBytesMax / block_bytes;
  if (prompt->block_count() > blocks_max) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a prompt of ", prompt->block_count(), " blocks of ", block_bytes,
                     " bytes; a worker has room for ", blocks_max, ": make blocks smaller"));
  }
  prompt_ = prompt;
  wrong_bytes_ = 0;
  const size_t needed = prompt->block_count() * block_bytes;
  if (bytes_.size() < needed) bytes_.resize(needed);
  return absl::OkStatus();
}

void ReplayEngine::UsePrompt(const Prompt& prompt) {
  CAIRN_CHECK(prompt_ != nullptr && prompt.block_count() == prompt_->block_count());
  prompt_ = &prompt;
}

absl::Span<uint8_t> ReplayEngine::BlockAt(size_t block) {
  CAIRN_CHECK(prompt_ != nullptr && block < prompt_->block_count());
  const size_t block_bytes = name_space_->block_bytes();
  return absl::MakeSpan(bytes_).subspan(block * block_bytes, block_bytes);
}

absl::Span<uint8_t> ReplayEngine::PlaceOf(size_t block, const SegmentId& id) {
  return ContiguousBlocks(&name_space_->payload_map(), BlockAt(block))(0, id);
}

absl::Span<const uint8_t> ReplayEngine::BytesOf(size_t block, const SegmentId& id) {
  return PlaceOf(block, id);
}

absl::StatusOr<absl::Duration> ReplayEngine::Compute(const std::string& worker_address,
                                                     size_t first_block) {
  CAIRN_CHECK(prompt_ != nullptr && first_block <= prompt_->block_count());
  const PayloadMap& map = name_space_->payload_map();
  for (size_t block = 0; block < first_block; ++block) {
    FillSyntheticBlock(map, prompt_->keys()[block], absl::MakeSpan(expected_));
    const absl::Span<const uint8_t> got = BlockAt(block);
    if (std::equal(got.begin(), got.end(), expected_.begin())) continue;
    for (size_t i = 0; i < got.size(); ++i) wrong_bytes_ += got[i] != expected_[i] ? 1 : 0;
  }
  for (size_t block = first_block; block < prompt_->block_count(); ++block) {
    FillSyntheticBlock(map, prompt_->keys()[block], BlockAt(block));
  }
  const uint64_t cached_tokens = first_block * uint64_t{name_space_->block_tokens()};
  return queues_->Compute(worker_address, prompt_->token_count() - cached_tokens);
}

}  // namespace cairn::replay
