#include "client/replay/model/local_attention.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "kernels/append.h"

namespace cairn::replay {
namespace {

absl::Status Wrong(uint64_t sequence, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("sequence ", sequence, ": ", what));
}

absl::Status Unknown(uint64_t sequence) {
  return absl::NotFoundError(absl::StrCat("sequence ", sequence, " is not open"));
}

absl::Status ValidateOptions(const LocalAttentionOptions& options) {
  const kernels::Problem problem = kernels::ValidateShape(options.shape);
  if (!problem.empty()) return absl::InvalidArgumentError(problem);
  if (options.shape.scales == kernels::KvScales::kPerHead) {
    return absl::InvalidArgumentError(
        "scales one a head: unknown while a block fills; take none, or one a token and head");
  }
  if (options.shape.value_dim != options.shape.key_dim) {
    return absl::InvalidArgumentError(absl::StrCat("value_dim ", options.shape.value_dim,
                                                   " is not key_dim ", options.shape.key_dim));
  }
  if (options.layers == 0) return absl::InvalidArgumentError("layers is 0; allowed: 1 and more");
  if (options.query_heads == 0 || options.query_heads % options.shape.kv_heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat("query_heads ", options.query_heads,
                                                   " is not a multiple of kv_heads ",
                                                   options.shape.kv_heads));
  }
  if (!kernels::IsAvailable(options.path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("this processor has no path ", kernels::NameOf(options.path)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalAttention>> LocalAttention::Make(
    const LocalAttentionOptions& options) {
  if (absl::Status status = ValidateOptions(options); !status.ok()) return status;
  return std::unique_ptr<LocalAttention>(new LocalAttention(options));
}

LocalAttention::LocalAttention(const LocalAttentionOptions& options)
    : options_(options),
      segment_(kernels::SegmentOf(options.shape)),
      pool_(segment_.bytes * options.layers, options.pages_max),
      runner_(options.path, &threads_) {}

absl::StatusOr<LocalAttention::Sequence*> LocalAttention::Find(uint64_t sequence) {
  const auto found = sequences_.find(sequence);
  if (found == sequences_.end()) return Unknown(sequence);
  return &found->second;
}

absl::StatusOr<const LocalAttention::Sequence*> LocalAttention::Find(uint64_t sequence) const {
  const auto found = sequences_.find(sequence);
  if (found == sequences_.end()) return Unknown(sequence);
  return &found->second;
}

absl::Status LocalAttention::Open(uint64_t sequence, uint64_t first_position) {
  Sequence opened;
  opened.first_position = first_position;
  opened.tokens.assign(options_.layers, 0);
  if (!sequences_.emplace(sequence, std::move(opened)).second) {
    return absl::AlreadyExistsError(absl::StrCat("sequence ", sequence, " is open already"));
  }
  return absl::OkStatus();
}

absl::Status LocalAttention::Close(uint64_t sequence) {
  const auto found = sequences_.find(sequence);
  if (found == sequences_.end()) return Unknown(sequence);
  for (const kernels::KvPage& page : found->second.pages) pool_.Release(page.region);
  sequences_.erase(found);
  return absl::OkStatus();
}

absl::Status LocalAttention::Fork(uint64_t sequence, uint64_t fork) {
  absl::StatusOr<Sequence*> found = Find(sequence);
  if (!found.ok()) return found.status();
  Sequence copy = **found;
  if (!sequences_.emplace(fork, copy).second) {
    return absl::AlreadyExistsError(absl::StrCat("sequence ", fork, " is open already"));
  }
  for (const kernels::KvPage& page : copy.pages) pool_.Share(page.region);
  return absl::OkStatus();
}

absl::Status LocalAttention::Truncate(uint64_t sequence, uint64_t end_position) {
  absl::StatusOr<Sequence*> found = Find(sequence);
  if (!found.ok()) return found.status();
  Sequence& truncated = **found;
  const uint64_t first = truncated.first_position;
  const uint64_t least = *std::min_element(truncated.tokens.begin(), truncated.tokens.end());
  if (end_position < first || end_position - first > least) {
    return Wrong(sequence, absl::StrCat("cannot end at ", end_position, "; it holds positions ",
                                        first, " to ", first + least));
  }
  const uint64_t tokens = end_position - first;
  std::fill(truncated.tokens.begin(), truncated.tokens.end(), tokens);
  const uint64_t page_tokens = options_.shape.page_tokens;
  while (truncated.pages.size() * page_tokens >= tokens + page_tokens) {
    pool_.Release(truncated.pages.back().region);
    truncated.pages.pop_back();
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> LocalAttention::EndPosition(uint64_t sequence) const {
  absl::StatusOr<const Sequence*> found = Find(sequence);
  if (!found.ok()) return found.status();
  const std::vector<uint64_t>& tokens = (*found)->tokens;
  return (*found)->first_position + *std::min_element(tokens.begin(), tokens.end());
}

absl::StatusOr<absl::Span<const std::byte>> LocalAttention::Part(uint64_t sequence,
                                                                 uint64_t index) const {
  absl::StatusOr<const Sequence*> found = Find(sequence);
  if (!found.ok()) return found.status();
  const std::vector<uint64_t>& tokens = (*found)->tokens;
  const uint64_t full =
      *std::min_element(tokens.begin(), tokens.end()) / options_.shape.page_tokens;
  if (index >= full) {
    return Wrong(sequence, absl::StrCat("block ", index, " is not full; ", full, " are"));
  }
  return pool_.Bytes((*found)->pages[index].region);
}

absl::StatusOr<absl::Span<const std::byte>> LocalAttention::Segment(uint64_t sequence,
                                                                    uint64_t index,
                                                                    uint32_t layer) const {
  if (layer >= options_.layers) {
    return Wrong(sequence, absl::StrCat("layer ", layer, " of ", options_.layers));
  }
  absl::StatusOr<absl::Span<const std::byte>> part = Part(sequence, index);
  if (!part.ok()) return part.status();
  return part->subspan(layer * segment_.bytes, segment_.bytes);
}

absl::Status LocalAttention::AppendPart(uint64_t sequence, absl::Span<const std::byte> part) {
  absl::StatusOr<Sequence*> found = Find(sequence);
  if (!found.ok()) return found.status();
  Sequence& filled = **found;
  const uint64_t page_tokens = options_.shape.page_tokens;
  if (part.size() != pool_.page_bytes()) {
    return Wrong(sequence,
                 absl::StrCat("a part of ", part.size(), " bytes, not ", pool_.page_bytes()));
  }
  for (uint64_t tokens : filled.tokens) {
    if (tokens % page_tokens == 0 && tokens == filled.tokens[0]) continue;
    return Wrong(sequence,
                 absl::StrCat("ends at token ", tokens,
                              " in some layer, not at the edge of a block of ", page_tokens));
  }
  const uint64_t begin = filled.tokens[0];
  absl::Status status = MakeRoom(sequence, begin, begin + page_tokens, &filled);
  if (!status.ok()) return status;
  std::copy(part.begin(), part.end(), pool_.Bytes(filled.pages[begin / page_tokens].region).data());
  for (uint64_t& tokens : filled.tokens) tokens += page_tokens;
  return absl::OkStatus();
}

absl::Status LocalAttention::AddPage(uint64_t number, Sequence* sequence) {
  const std::optional<uint64_t> page = pool_.Take();
  if (!page.has_value()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "sequence ", number, ": all ", options_.pages_max, " pages are in use; close sequences"));
  }
  sequence->pages.push_back({*page, 0});
  return absl::OkStatus();
}

absl::Status LocalAttention::MakeRoom(uint64_t number, uint64_t begin, uint64_t end,
                                      Sequence* sequence) {
  const uint64_t page_tokens = options_.shape.page_tokens;
  while (sequence->pages.size() * page_tokens < end) {
    if (absl::Status status = AddPage(number, sequence); !status.ok()) return status;
  }
  for (uint64_t i = begin / page_tokens; i * page_tokens < end; ++i) {
    const uint64_t shared = sequence->pages[i].region;
    if (!pool_.IsShared(shared)) continue;
    if (absl::Status status = AddPage(number, sequence); !status.ok()) return status;
    const uint64_t own = sequence->pages.back().region;
    sequence->pages.pop_back();
    const absl::Span<const std::byte> bytes = std::as_const(pool_).Bytes(shared);
    std::copy(bytes.begin(), bytes.end(), pool_.Bytes(own).data());
    pool_.Release(shared);
    sequence->pages[i].region = own;
  }
  return absl::OkStatus();
}

absl::Status LocalAttention::Append(uint32_t layer, const AttentionRows& rows) {
  absl::StatusOr<Sequence*> found = Find(rows.sequence);
  if (!found.ok()) return found.status();
  Sequence& sequence = **found;
  const uint64_t begin = sequence.tokens[layer];
  if (rows.position != sequence.first_position + begin) {
    return Wrong(rows.sequence, absl::StrCat("rows at position ", rows.position, ", but layer ",
                                             layer, " ends at ", sequence.first_position + begin));
  }
  absl::Status status = MakeRoom(rows.sequence, begin, begin + rows.count, &sequence);
  if (!status.ok()) return status;
  std::vector<int64_t> slots;
  for (uint64_t i = 0; i < rows.count; ++i) slots.push_back(static_cast<int64_t>(begin + i));
  const uint64_t head_bytes = options_.shape.key_dim * sizeof(float);
  const uint64_t token_bytes = options_.shape.kv_heads * head_bytes;
  kernels::AppendBatch batch;
  batch.shape = options_.shape;
  batch.regions = pool_.writable_regions().data();
  batch.region_count = pool_.writable_regions().size();
  batch.segment_offset = layer * segment_.bytes;
  batch.pages = sequence.pages.data();
  batch.page_count = sequence.pages.size();
  batch.slots = slots.data();
  batch.token_count = rows.count;
  batch.keys = {reinterpret_cast<const std::byte*>(rows.keys), token_bytes, head_bytes};
  batch.values = {reinterpret_cast<const std::byte*>(rows.values), token_bytes, head_bytes};
  const kernels::Problem problem = kernels::AppendTokens(batch);
  if (!problem.empty()) return Wrong(rows.sequence, problem);
  sequence.tokens[layer] += rows.count;
  return absl::OkStatus();
}

absl::Status LocalAttention::Attend(uint32_t layer, absl::Span<const AttentionRows> rows) {
  CAIRN_CHECK(layer < options_.layers);
  for (const AttentionRows& one : rows) {
    if (absl::Status status = Append(layer, one); !status.ok()) return status;
  }
  return AttendStored(layer, rows);
}

absl::Status LocalAttention::AttendStored(uint32_t layer, absl::Span<const AttentionRows> rows) {
  CAIRN_CHECK(layer < options_.layers);
  const uint64_t width = uint64_t{options_.query_heads} * options_.shape.key_dim;
  uint64_t count = 0;
  for (const AttentionRows& one : rows) count += one.count;
  std::vector<kernels::AttentionQuery> queries;
  std::vector<kernels::AttentionSequence> sequences;
  queries.reserve(count);  // Sequences point into it.
  for (const AttentionRows& one : rows) {
    absl::StatusOr<Sequence*> found = Find(one.sequence);
    if (!found.ok()) return found.status();
    const Sequence& sequence = **found;
    const uint64_t first = sequence.first_position;
    for (uint64_t i = 0; i < one.count; ++i) {
      const uint64_t position = one.position + i;
      queries.push_back({position, one.queries + i * width, one.output + i * width,
                         one.log_sum_exp + i * options_.query_heads});
      const uint64_t before = position < first ? 0 : position + 1 - first;
      const uint64_t seen = std::min(before, sequence.tokens[layer]);
      sequences.push_back(
          {sequence.pages.data(), sequence.pages.size(), seen, first, &queries.back(), 1});
    }
  }
  kernels::AttentionBatch batch;
  batch.shape = options_.shape;
  batch.query_heads = options_.query_heads;
  batch.softmax_scale = options_.softmax_scale;
  batch.regions = {pool_.regions().data(), pool_.regions().size(), layer * segment_.bytes};
  batch.sequences = sequences.data();
  batch.sequence_count = sequences.size();
  const kernels::Problem problem = runner_.Run(batch);
  return problem.empty() ? absl::OkStatus() : absl::InvalidArgumentError(problem);
}

}  // namespace cairn::replay
