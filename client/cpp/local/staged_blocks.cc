#include "client/cpp/local/staged_blocks.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cpp/write_stream.h"
#include "common/base/check.h"
#include "common/local/local_limits.h"

namespace cairn {
namespace {

// Of one request: its answer, with a digest a segment, fits into a packet.
constexpr size_t kSegmentsPerPutMax = 4096;
static_assert(kSegmentsPerPutMax <= kLocalDigestsPerAnswerMax);

void AddBlock(const PayloadMap& map, uint32_t index, uint64_t offset, v1::LocalPut* put) {
  for (const PayloadMap::Part& part : map.parts()) {
    v1::LocalPiece* piece = put->add_pieces();
    piece->set_staging_offset(offset + part.offset);
    piece->set_layers(part.layers);
    piece->mutable_piece()->set_block(index);
    piece->mutable_piece()->set_group(part.group);
    piece->mutable_piece()->set_slice(part.slice);
    piece->mutable_piece()->set_length(static_cast<uint32_t>(part.bytes));
  }
}

}  // namespace

absl::StatusOr<StagedBlocks> StagedBlocks::Make(LocalLink* link, const PayloadMap& map,
                                                absl::Span<const uint32_t> blocks,
                                                absl::Time deadline) {
  const uint64_t block_bytes = map.block_bytes();
  if (blocks.empty() || blocks.size() > kLocalStagingBytesMax / block_bytes ||
      map.segment_count() > kSegmentsPerPutMax || map.parts().size() > kLocalPiecesPerPutMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(blocks.size(), " blocks of ", block_bytes, " bytes and ", map.segment_count(),
                     " segments: staging memory holds 1 to ", kLocalStagingBytesMax,
                     " bytes, and a block of at most ", kSegmentsPerPutMax, " segments"));
  }
  absl::StatusOr<LocalLink::Staging> staging =
      link->TakeStaging(blocks.size() * block_bytes, deadline);
  if (!staging.ok()) return staging.status();
  return StagedBlocks(link, *std::move(staging), block_bytes, {blocks.begin(), blocks.end()});
}

absl::Span<uint8_t> StagedBlocks::bytes(size_t block) {
  CAIRN_CHECK(block < blocks_.size());
  return staging_.bytes().subspan(block * block_bytes_, block_bytes_);
}

absl::Status StagedBlocks::Land(
    const TokenId& token, const PayloadMap& map, absl::Time deadline,
    absl::FunctionRef<void(size_t block, size_t segment, uint64_t digest)> landed) {
  CAIRN_CHECK(map.block_bytes() == block_bytes_);
  const size_t segments = map.segment_count();
  const size_t per_put = std::max<size_t>(
      1, std::min(kSegmentsPerPutMax / segments, kLocalPiecesPerPutMax / map.parts().size()));
  for (size_t first = 0; first < blocks_.size(); first += per_put) {
    const size_t count = std::min(per_put, blocks_.size() - first);
    v1::LocalPut put;
    put.set_token(std::string(token.view()));
    for (size_t i = first; i < first + count; ++i) {
      AddBlock(map, blocks_[i], i * block_bytes_, &put);
    }
    const absl::StatusOr<v1::LocalLanded> answer = link_->Put(put, deadline);
    if (!answer.ok()) return answer.status();
    if (answer->errors_size() > 0) return StatusOfPieceError(answer->errors(0));
    if (static_cast<size_t>(answer->digests_size()) != count * segments) {
      return absl::InternalError(absl::StrCat("the node answered ", answer->digests_size(),
                                              " digests for ", count * segments, " segments"));
    }
    for (size_t i = 0; i < count * segments; ++i) {
      landed(first + i / segments, i % segments, answer->digests(static_cast<int>(i)));
    }
    link_->CountStaged(count * block_bytes_);
  }
  return absl::OkStatus();
}

}  // namespace cairn
