#include "client/replay/normalised_trace.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"

namespace cairn::replay {
namespace {

constexpr size_t kFields = 5;

absl::Status NotNumber(absl::string_view what, absl::string_view text) {
  constexpr size_t kShownBytesMax = 60;
  return absl::InvalidArgumentError(
      absl::StrCat(what, " is \"", text.substr(0, kShownBytesMax), "\", not a number"));
}

absl::StatusOr<uint64_t> Unsigned(absl::string_view what, absl::string_view text, uint64_t max) {
  uint64_t value = 0;
  if (!absl::SimpleAtoi(text, &value)) return NotNumber(what, text);
  if (value > max) return absl::InvalidArgumentError(absl::StrCat(what, " is over ", max));
  return value;
}

// One id, or an inclusive range of ids.
absl::StatusOr<IdRun> ParseRun(absl::string_view text) {
  const size_t dash = text.find('-');
  absl::StatusOr<uint64_t> first = Unsigned("an id", text.substr(0, dash), kTraceIdsEnd - 1);
  if (!first.ok()) return first.status();
  if (dash == absl::string_view::npos) return IdRun{*first, 1};
  absl::StatusOr<uint64_t> last = Unsigned("an id", text.substr(dash + 1), kTraceIdsEnd - 1);
  if (!last.ok()) return last.status();
  if (*last < *first) {
    return absl::InvalidArgumentError(absl::StrCat("the range ", text, " ends before it starts"));
  }
  return IdRun{*first, *last - *first + 1};
}

// The runs in `text`, and how many ids: more than `ids_max` are an error.
absl::StatusOr<std::vector<IdRun>> ParseRuns(absl::string_view text, uint64_t ids_max,
                                             uint64_t* ids) {
  std::vector<IdRun> runs;
  *ids = 0;
  if (text.empty()) return runs;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    absl::StatusOr<IdRun> run = ParseRun(part);
    if (!run.ok()) return run.status();
    if (run->count > ids_max - *ids) {
      return absl::InvalidArgumentError(absl::StrCat(
          "more than the ", ids_max, " ids that its tokens need: is the block size right?"));
    }
    *ids += run->count;
    AppendRun(*run, &runs);
  }
  return runs;
}

}  // namespace

NormalisedTrace::NormalisedTrace(std::unique_ptr<LineReader> lines, uint32_t block_tokens)
    : LineTrace(std::move(lines)), block_tokens_(block_tokens) {
  CAIRN_CHECK(block_tokens > 0);
}

absl::StatusOr<TraceRequest> NormalisedTrace::Parse(absl::string_view line, uint64_t line_number) {
  std::vector<absl::string_view> fields = absl::StrSplit(line, ' ');
  if (fields.size() == kFields - 1) fields.emplace_back();
  if (fields.size() != kFields) {
    return absl::InvalidArgumentError(
        absl::StrCat(fields.size(), " fields, not \"seconds input output namespace ranges\""));
  }
  TraceRequest request;
  if (!absl::SimpleAtod(fields[0], &request.arrival_s) || !std::isfinite(request.arrival_s)) {
    return NotNumber("seconds", fields[0]);
  }
  absl::StatusOr<uint64_t> input = Unsigned("input", fields[1], UINT32_MAX);
  if (!input.ok()) return input.status();
  if (absl::Status valid = ValidateTokenCount(*input); !valid.ok()) return valid;
  absl::StatusOr<uint64_t> output = Unsigned("output", fields[2], UINT32_MAX);
  if (!output.ok()) return output.status();
  absl::StatusOr<uint64_t> name_space = Unsigned("namespace", fields[3], UINT64_MAX);
  if (!name_space.ok()) return name_space.status();

  const uint64_t full_blocks = *input / block_tokens_;
  const uint64_t blocks = (*input + block_tokens_ - 1) / block_tokens_;
  uint64_t ids = 0;
  absl::StatusOr<std::vector<IdRun>> runs = ParseRuns(fields[4], blocks, &ids);
  if (!runs.ok()) return runs.status();
  if (ids < full_blocks) {
    return absl::InvalidArgumentError(absl::StrCat(ids, " ids; ", *input, " tokens have ",
                                                   full_blocks, " full blocks of ", block_tokens_,
                                                   ": is the block size right?"));
  }
  // Line numbers are unique, and ids of the trace lie below kTraceIdsEnd.
  if (ids < blocks) AppendRun({kTraceIdsEnd + line_number, 1}, &*runs);
  request.output_tokens = *output;
  request.prompt = TracePrompt::FromIds(*name_space, block_tokens_, *std::move(runs), *input);
  return request;
}

}  // namespace cairn::replay
