#include "tests/bench/eviction/known_traces.h"

#include <filesystem>

namespace cairn::bench {
namespace {

constexpr absl::string_view kConversation = "mooncake_conversation_trace.jsonl";
constexpr absl::string_view kSynthetic = "mooncake_synthetic_trace.jsonl";
constexpr absl::string_view kClaude = "claude_code_32users.txt";
constexpr absl::string_view kAgents = "agent_tokens_qwen3.jsonl";

}  // namespace

std::vector<KnownTrace> KnownTraces() {
  return {
      {.name = "conversation",
       .file = kConversation,
       .partial = true,
       .capacities = {64, 195, 586, 1953, 5859, 19531, 58593, 97656},
       .judged = {586, 1953, 5859, 19531, 58593}},
      {.name = "conversation_full", .file = kConversation, .capacities = {586, 5859, 58593}},
      {.name = "synthetic",
       .file = kSynthetic,
       .partial = true,
       .capacities = {64, 195, 586, 1953, 5859, 19531, 58593, 97656},
       .judged = {586, 1953, 5859, 19531}},
      {.name = "synthetic_full", .file = kSynthetic, .capacities = {586, 5859, 58593}},
      {.name = "claude",
       .file = kClaude,
       .partial = true,
       .capacities = {15625, 46875, 156250, 468750},
       .judged = {15625, 46875}},
      {.name = "miniswe",
       .file = kAgents,
       .source = "miniswe",
       .capacities = {256, 1024, 4096, 16384}},
      {.name = "magagent",
       .file = kAgents,
       .source = "magagent",
       .capacities = {256, 1024, 4096, 16384}},
      {.name = "taubench",
       .file = kAgents,
       .source = "taubench",
       .capacities = {256, 1024, 4096, 16384}},
      {.name = "agents", .file = kAgents, .capacities = {1024, 4096, 16384}},
  };
}

std::optional<std::string> FindTrace(const std::string& folder, absl::string_view file) {
  for (const absl::string_view ending : {"", ".gz"}) {
    std::filesystem::path path = std::filesystem::path(folder) / std::string(file);
    path += std::string(ending);
    std::error_code error;
    if (std::filesystem::is_regular_file(path, error)) return path.string();
  }
  return std::nullopt;
}

}  // namespace cairn::bench
