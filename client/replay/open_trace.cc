#include "client/replay/open_trace.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/replay/agent_tokens_trace.h"
#include "client/replay/json_fields.h"
#include "client/replay/line_reader.h"
#include "client/replay/mooncake_trace.h"
#include "client/replay/normalised_trace.h"
#include "common/identity/key_chain.h"

namespace cairn::replay {
namespace {

enum class Format { kMooncake, kAgentTokens, kNormalised };

// What a first line shows, or nothing.
std::optional<Format> FormatOf(absl::string_view line) {
  if (absl::ascii_isdigit(static_cast<unsigned char>(line.front()))) return Format::kNormalised;
  absl::StatusOr<nlohmann::json> object = ParseObject(line);
  if (!object.ok()) return std::nullopt;
  if (object->contains("timestamp") && object->contains("hash_ids")) return Format::kMooncake;
  if (object->contains("ref") && object->contains("add")) return Format::kAgentTokens;
  return std::nullopt;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TraceReader>> OpenTrace(const std::string& path,
                                                       const TraceOptions& options) {
  if (options.block_tokens > kPromptTokensMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("block_tokens is ", options.block_tokens, ", over ", kPromptTokensMax));
  }
  absl::StatusOr<std::unique_ptr<LineReader>> lines = LineReader::Open(path);
  if (!lines.ok()) return lines.status();
  absl::StatusOr<std::optional<absl::string_view>> first = (*lines)->Peek();
  if (!first.ok()) return first.status();
  if (!first->has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": a trace without a line"));
  }
  const std::optional<Format> format = FormatOf(**first);
  if (!format.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        (*lines)->Place(),
        ": not a trace known here; wanted: JSON lines with \"timestamp\" and \"hash_ids\", JSON "
        "lines with \"ref\" and \"add\", or lines \"seconds input output namespace ranges\""));
  }
  const uint32_t asked = options.block_tokens;
  switch (*format) {
    case Format::kMooncake:
      return std::make_unique<MooncakeTrace>(*std::move(lines),
                                             asked > 0 ? asked : kMooncakeBlockTokens);
    case Format::kNormalised:
      return std::make_unique<NormalisedTrace>(*std::move(lines),
                                               asked > 0 ? asked : kNormalisedBlockTokens);
    case Format::kAgentTokens:
      break;
  }
  if (asked > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": has real tokens, so block_tokens is to be left at 0"));
  }
  return std::make_unique<AgentTokensTrace>(*std::move(lines));
}

}  // namespace cairn::replay
