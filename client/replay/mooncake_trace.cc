#include "client/replay/mooncake_trace.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/replay/json_fields.h"
#include "common/base/check.h"

namespace cairn::replay {

MooncakeTrace::MooncakeTrace(std::unique_ptr<LineReader> lines, uint32_t block_tokens)
    : LineTrace(std::move(lines)), block_tokens_(block_tokens) {
  CAIRN_CHECK(block_tokens > 0);
}

absl::StatusOr<TraceRequest> MooncakeTrace::Parse(absl::string_view line,
                                                  uint64_t /*line_number*/) {
  absl::StatusOr<nlohmann::json> object = ParseObject(line);
  if (!object.ok()) return object.status();
  absl::StatusOr<double> timestamp_ms = NumberField(*object, "timestamp");
  if (!timestamp_ms.ok()) return timestamp_ms.status();
  absl::StatusOr<uint64_t> input = UnsignedField(*object, "input_length", UINT32_MAX);
  if (!input.ok()) return input.status();
  if (absl::Status valid = ValidateTokenCount(*input); !valid.ok()) return valid;
  absl::StatusOr<uint64_t> output = UnsignedField(*object, "output_length", UINT32_MAX);
  if (!output.ok()) return output.status();
  absl::StatusOr<std::vector<uint64_t>> ids =
      UnsignedArrayField(*object, "hash_ids", kTraceIdsEnd - 1);
  if (!ids.ok()) return ids.status();

  const uint64_t blocks = (*input + block_tokens_ - 1) / block_tokens_;
  if (ids->size() != blocks) {
    return absl::InvalidArgumentError(absl::StrCat("\"hash_ids\" has ", ids->size(), " ids; ",
                                                   *input, " tokens in blocks of ", block_tokens_,
                                                   " have ", blocks));
  }
  std::vector<IdRun> runs;
  for (const uint64_t id : *ids) AppendRun({id, 1}, &runs);
  TraceRequest request;
  request.arrival_s = *timestamp_ms / 1e3;
  request.output_tokens = *output;
  request.prompt = TracePrompt::FromIds(/*name_space=*/0, block_tokens_, std::move(runs), *input);
  return request;
}

}  // namespace cairn::replay
