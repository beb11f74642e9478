#include "client/replay/line_trace.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/identity/key_chain.h"

namespace cairn::replay {

LineTrace::LineTrace(std::unique_ptr<LineReader> lines) : lines_(std::move(lines)) {}

absl::StatusOr<std::optional<TraceRequest>> LineTrace::Read() {
  absl::StatusOr<std::optional<absl::string_view>> line = lines_->Next();
  if (!line.ok()) return line.status();
  if (!line->has_value()) return std::nullopt;
  absl::StatusOr<TraceRequest> request = Parse(**line, lines_->line_number());
  if (request.ok()) return *std::move(request);
  return absl::Status(request.status().code(),
                      absl::StrCat(lines_->Place(), ": ", request.status().message()));
}

absl::Status ValidateTokenCount(uint64_t tokens) {
  if (tokens <= kPromptTokensMax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a prompt of ", tokens, " tokens; at most ", kPromptTokensMax, " are taken"));
}

}  // namespace cairn::replay
