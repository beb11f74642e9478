#include "client/replay/stampede_trace.h"

#include "absl/strings/str_cat.h"

namespace cairn::replay {
namespace {

// One id covers so many tokens.
constexpr uint32_t kIdTokens = 64;
// Ids of one seed's prompt.
constexpr uint64_t kIdsPerSeed = uint64_t{1} << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<StampedeTrace>> StampedeTrace::Make(const StampedeOptions& options) {
  if (options.requests < 1 || options.requests > kRequestsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("requests: ", options.requests, "; 1 to ", kRequestsMax));
  }
  if (options.prompt_tokens < 1 || options.prompt_tokens > kPromptTokensMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("prompt_tokens: ", options.prompt_tokens, "; 1 to ", kPromptTokensMax));
  }
  if (options.seed >= kTraceIdsEnd / kIdsPerSeed) {
    return absl::InvalidArgumentError(
        absl::StrCat("seed: ", options.seed, "; under ", kTraceIdsEnd / kIdsPerSeed));
  }
  return std::unique_ptr<StampedeTrace>(new StampedeTrace(options));
}

absl::StatusOr<std::optional<TraceRequest>> StampedeTrace::Read() {
  if (made_ == options_.requests) return std::optional<TraceRequest>();
  ++made_;
  TraceRequest request;
  const uint64_t ids = (options_.prompt_tokens + kIdTokens - 1) / kIdTokens;
  request.prompt = TracePrompt::FromIds(
      /*name_space=*/0, kIdTokens, {{options_.seed * kIdsPerSeed, ids}}, options_.prompt_tokens);
  return std::optional<TraceRequest>(std::move(request));
}

}  // namespace cairn::replay
