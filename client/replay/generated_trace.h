// GeneratedTrace: requests made up under a seed, for when no trace is at hand.
//
// Three kinds, mixed by weight:
//   chat        64 open conversations, each behind one of 4 system prompts (256 to 1,024 tokens); a
//               turn adds a question (16 to 400 tokens) to all that was said, and its answer (32 to
//               600) is part of the next turn; one turn in 8 is the last;
//   retrieval   one system prompt (400 tokens), 3 to 6 documents (256 to 1,024 tokens) of 256, low
//               numbers far more often, and a question (16 to 100) that nobody asked before;
//   agent       16 open tasks behind one of 3 prompts with tool descriptions (2,048 to 4,096); a
//               step adds what a tool said (32 to 1,200) and is answered by 16 to 200 tokens; one
//               in 48 is the last.
// A conversation or task that would pass prompt_tokens_max begins anew. Arrivals are on average
// 1 / requests_per_second apart. The same options give the same requests in every build; another
// seed shares no block with them. Not thread-safe. Memory: the open conversations' piece lists.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "client/replay/trace.h"

namespace cairn::replay {

struct GeneratedTraceOptions {
  uint64_t seed = 1;
  uint64_t requests = 2000;
  uint32_t chat_weight = 2;
  uint32_t retrieval_weight = 1;
  uint32_t agent_weight = 2;
  uint32_t prompt_tokens_max = 16384;
  double requests_per_second = 20;
  // Each prompt begins with kTimestampPrefixTokens equal tokens and then so many that no other
  // prompt has: what a date at the start of a system prompt does. 0: none.
  uint32_t timestamp_tokens = 0;
};

class GeneratedTrace final : public TraceReader {
 public:
  // The longest first turn of any kind fits.
  static constexpr uint32_t kPromptTokensMaxLeast = 8192;
  static constexpr uint32_t kWeightMax = 1000;
  static constexpr uint32_t kTimestampPrefixTokens = 5;
  static constexpr uint32_t kTimestampTokensMax = 64;

  // INVALID_ARGUMENT names the option that is out of range.
  static absl::StatusOr<std::unique_ptr<GeneratedTrace>> Make(const GeneratedTraceOptions& options);

  uint32_t block_tokens() const override { return 0; }

 private:
  // Some text: its tokens follow from its id.
  struct Piece {
    uint64_t id = 0;
    uint64_t tokens = 0;
  };
  struct Conversation {
    std::vector<Piece> pieces;  // None before the first turn.
    uint64_t tokens = 0;
  };
  struct Kind;

  explicit GeneratedTrace(const GeneratedTraceOptions& options);

  absl::StatusOr<std::optional<TraceRequest>> Read() override;

  // Evenly in [least, most].
  uint64_t Uniform(uint64_t least, uint64_t most);
  // One of a fixed set of texts, its length fixed by its id.
  Piece FixedPiece(uint64_t id, uint64_t tokens_least, uint64_t tokens_most) const;
  Piece NewPiece(uint64_t tokens_least, uint64_t tokens_most);

  TraceRequest NextTurn(const Kind& kind, std::vector<Conversation>* open);
  TraceRequest NextRetrieval();
  TracePrompt PromptOf(const std::vector<Piece>& pieces);

  const GeneratedTraceOptions options_;
  uint64_t random_state_;
  uint64_t requests_made_ = 0;
  uint64_t pieces_made_ = 0;
  double now_s_ = 0;
  uint64_t prompts_made_ = 0;
  std::vector<Conversation> chats_;
  std::vector<Conversation> tasks_;
};

}  // namespace cairn::replay
