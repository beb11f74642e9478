#include "client/cpp/decode/prefix_opening.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/cache_node_client.h"
#include "client/cpp/decode/decode_client.h"
#include "common/wire/limits.h"

namespace cairn {
namespace {

uint64_t BlocksOf(absl::Span<const PartWish> parts) {
  uint64_t blocks = 0;
  for (const PartWish& part : parts) blocks += part.blocks;
  return blocks;
}

DecodeCostInputs InputsOf(const DecodeSession& session, uint64_t blocks,
                          const DecodeCostInputs& known) {
  DecodeCostInputs inputs = known;
  inputs.prefix_tokens = blocks * session.name_space().block_tokens();
  inputs.layers = 0;
  double stored = 0;
  double query = 0;
  double answer = 0;
  for (uint32_t i = 0; i < session.parameters_count(); ++i) {
    const RowSizes& sizes = session.sizes(i);
    const double layers = sizes.layers;
    inputs.layers += sizes.layers;
    stored += layers * sizes.stored_bytes;
    query += layers * static_cast<double>(sizes.query_bytes);
    answer += layers * static_cast<double>(sizes.AnswerBytes());
  }
  inputs.stored_bytes = stored / inputs.layers;
  inputs.query_bytes = query / inputs.layers;
  inputs.answer_bytes = answer / inputs.layers;
  return inputs;
}

// The parts of a block that the session's rank reads.
std::vector<PartLayers> PartsOf(const DecodeSession& session) {
  std::vector<PartLayers> parts;
  for (uint32_t i = 0; i < session.parameters_count(); ++i) {
    const RowSizes& sizes = session.sizes(i);
    for (uint32_t slice = 0; slice < sizes.slices; ++slice) {
      const PartLayers part{.group = session.parameters(i).group(),
                            .slice = sizes.first_slice + slice};
      // Several parameters may read one group.
      if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(part);
    }
  }
  return parts;
}

// Blocks [begin, end) of the prompt from one node.
absl::Status FetchFrom(const DecodeSession& session, const DecodeNode& node, const Prompt& prompt,
                       size_t begin, size_t end, SegmentPlace place, uint64_t* bytes) {
  if (node.cache == nullptr) return absl::InvalidArgumentError("no client to fetch with");
  const absl::Span<const BlockKey> keys(prompt.keys());
  while (begin < end) {
    const size_t count = std::min<size_t>(end - begin, kKeysPerGetMax);
    const GetResult got =
        node.cache->Get(session.name_space(), keys.subspan(begin, count),
                        [&](size_t block, const SegmentId& id) { return place(begin + block, id); },
                        {.parts = PartsOf(session)});
    *bytes += got.bytes_verified;
    if (!got.status.ok()) return got.status;
    if (got.usable_prefix < count) {
      return absl::NotFoundError(absl::StrCat("lacks block ", begin + got.usable_prefix));
    }
    begin += count;
  }
  return absl::OkStatus();
}

absl::Status Fetch(const DecodeSession& session, const Prompt& prompt,
                   absl::Span<const PartWish> parts, SegmentPlace place, PrefixOpening* opening) {
  for (const PartWish& part : parts) {
    if (part.blocks == 0) continue;
    const size_t end = size_t{part.first_block} + part.blocks;
    if (end > prompt.block_count()) {
      return absl::InvalidArgumentError(
          absl::StrCat("a part ends at block ", end, " of ", prompt.block_count()));
    }
    absl::Status status = absl::NotFoundError("a part has no holder to fetch it from");
    for (const DecodeNode& node : part.holders) {
      status =
          FetchFrom(session, node, prompt, part.first_block, end, place, &opening->fetched_bytes);
      if (status.ok()) break;
    }
    if (!status.ok()) return status;
    opening->fetched_blocks += part.blocks;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PrefixOpening> OpenPrefix(DecodeSession* session, uint64_t sequence,
                                         const Prompt& prompt, absl::Span<const PartWish> parts,
                                         const OpeningWish& wish, SegmentPlace place) {
  PrefixOpening opening;
  opening.cost = CompareDecodeCost(InputsOf(*session, BlocksOf(parts), wish.cost));
  opening.way = opening.cost.way;
  if (wish.choice == WayChoice::kServe) opening.way = DecodeWay::kServe;
  if (wish.choice == WayChoice::kFetch) opening.way = DecodeWay::kFetch;
  if (opening.way == DecodeWay::kFetch) {
    opening.fetch_status = Fetch(*session, prompt, parts, place, &opening);
    if (opening.fetch_status.ok()) {
      // No part at all: every token is the caller's.
      const absl::Status status = session->Open(sequence, prompt, {});
      if (!status.ok()) return status;
      return opening;
    }
    if (wish.choice == WayChoice::kFetch) return opening.fetch_status;
    opening.way = DecodeWay::kServe;
    opening.fetched_blocks = 0;
  }
  const absl::Status status = session->Open(sequence, prompt, parts);
  if (!status.ok()) return status;
  return opening;
}

}  // namespace cairn
