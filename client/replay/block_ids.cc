#include "client/replay/block_ids.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "client/replay/block_token.h"
#include "common/base/check.h"

namespace cairn::replay {
namespace {

uint64_t ContentHash(absl::Span<const uint32_t> tokens) {
  uint64_t hash = tokens.size();
  for (const uint32_t token : tokens) hash = SplitMix64(hash ^ token);
  return hash;
}

std::vector<IdRun> FirstOf(absl::Span<const IdRun> runs, uint64_t ids) {
  std::vector<IdRun> first;
  for (const IdRun& run : runs) {
    const uint64_t count = std::min(run.count, ids);
    if (count > 0) first.push_back({run.first, count});
    ids -= count;
  }
  CAIRN_CHECK(ids == 0);
  return first;
}

}  // namespace

BlockIds::BlockIds(uint32_t block_tokens) : block_tokens_(block_tokens) {
  CAIRN_CHECK(block_tokens > 0);
}

absl::StatusOr<std::vector<IdRun>> BlockIds::RunsOf(const TracePrompt& prompt) {
  const uint64_t full_blocks = prompt.token_count() / block_tokens_;
  if (prompt.block_tokens() == block_tokens_) return FirstOf(prompt.runs(), full_blocks);
  std::vector<IdRun> runs;
  const std::vector<uint32_t> tokens = prompt.Tokens();
  for (uint64_t block = 0; block < full_blocks; ++block) {
    const uint64_t content =
        ContentHash(absl::MakeConstSpan(tokens).subspan(block * block_tokens_, block_tokens_));
    // Past every id that a trace may hold, so that both kinds live in one oracle.
    const uint64_t fresh = kTraceIdsEnd + by_content_.size();
    const auto found = by_content_.try_emplace(content, fresh).first;
    AppendRun({found->second, 1}, &runs);
  }
  if (by_content_.size() > kHashedBlocksMax) {
    return absl::ResourceExhaustedError(absl::StrCat(
        by_content_.size(), " distinct blocks; at most ", kHashedBlocksMax, " are kept"));
  }
  return runs;
}

}  // namespace cairn::replay
