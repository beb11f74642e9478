#include "client/replay/generated_trace.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/replay/block_token.h"
#include "common/base/check.h"
#include "common/identity/key_chain.h"

namespace cairn::replay {

// Lengths are in tokens, both ends included.
struct GeneratedTrace::Kind {
  uint64_t first_piece_id = 0;  // Of the texts that conversations of this kind begin with.
  uint64_t openings = 0;
  uint64_t opening_least = 0, opening_most = 0;
  uint64_t asked_least = 0, asked_most = 0;
  uint64_t answered_least = 0, answered_most = 0;
  uint64_t turns_to_an_end = 0;  // One turn in so many is the last.
};

namespace {

constexpr size_t kChats = 64;
constexpr size_t kTasks = 16;
constexpr uint64_t kDocuments = 256;
constexpr uint64_t kDocumentsLeast = 3, kDocumentsMost = 6;
constexpr uint64_t kDocumentTokensLeast = 256, kDocumentTokensMost = 1024;
constexpr uint64_t kRetrievalPromptTokens = 400;

// Ids of fixed pieces; new pieces come after them.
constexpr uint64_t kChatOpeningId = 0;
constexpr uint64_t kAgentOpeningId = 100;
constexpr uint64_t kRetrievalPromptId = 200;
constexpr uint64_t kDocumentId = 1000;
constexpr uint64_t kTimestampId = 900;
constexpr uint64_t kNewPieceId = 1'000'000;

absl::Status OutOfRange(absl::string_view name, absl::string_view value, absl::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat(name, " is ", value, ", not ", wanted));
}

}  // namespace

absl::StatusOr<std::unique_ptr<GeneratedTrace>> GeneratedTrace::Make(
    const GeneratedTraceOptions& options) {
  const uint32_t weights[] = {options.chat_weight, options.retrieval_weight, options.agent_weight};
  uint64_t sum = 0;
  for (const uint32_t weight : weights) {
    if (weight > kWeightMax) {
      return OutOfRange("a weight", absl::StrCat(weight), absl::StrCat("at most ", kWeightMax));
    }
    sum += weight;
  }
  if (sum == 0) return OutOfRange("the sum of weights", "0", "above 0");
  if (options.prompt_tokens_max < kPromptTokensMaxLeast ||
      options.prompt_tokens_max > kPromptTokensMax) {
    return OutOfRange("prompt_tokens_max", absl::StrCat(options.prompt_tokens_max),
                      absl::StrCat("from ", kPromptTokensMaxLeast, " to ", kPromptTokensMax));
  }
  if (options.timestamp_tokens > kTimestampTokensMax) {
    return OutOfRange("timestamp_tokens", absl::StrCat(options.timestamp_tokens),
                      absl::StrCat("at most ", kTimestampTokensMax));
  }
  if (!std::isfinite(options.requests_per_second) || options.requests_per_second <= 0) {
    return OutOfRange("requests_per_second", absl::StrCat(options.requests_per_second), "above 0");
  }
  return std::unique_ptr<GeneratedTrace>(new GeneratedTrace(options));
}

GeneratedTrace::GeneratedTrace(const GeneratedTraceOptions& options)
    : options_(options), random_state_(options.seed), chats_(kChats), tasks_(kTasks) {}

uint64_t GeneratedTrace::Uniform(uint64_t least, uint64_t most) {
  CAIRN_CHECK(least <= most && most - least < UINT64_MAX);
  const uint64_t random = SplitMix64(random_state_);
  random_state_ += kSplitMixStep;
  return least + random % (most - least + 1);
}

GeneratedTrace::Piece GeneratedTrace::FixedPiece(uint64_t id, uint64_t tokens_least,
                                                 uint64_t tokens_most) const {
  const uint64_t random = BlockSeed(options_.seed, ~id);
  return {id, tokens_least + random % (tokens_most - tokens_least + 1)};
}

GeneratedTrace::Piece GeneratedTrace::NewPiece(uint64_t tokens_least, uint64_t tokens_most) {
  return {kNewPieceId + pieces_made_++, Uniform(tokens_least, tokens_most)};
}

TracePrompt GeneratedTrace::PromptOf(const std::vector<Piece>& pieces) {
  std::vector<uint32_t> tokens;
  if (options_.timestamp_tokens > 0) {
    const uint64_t same = BlockSeed(options_.seed, kTimestampId);
    for (uint64_t i = 0; i < kTimestampPrefixTokens; ++i) tokens.push_back(BlockToken(same, i));
    const uint64_t now = BlockSeed(~options_.seed, kTimestampId + prompts_made_++);
    for (uint64_t i = 0; i < options_.timestamp_tokens; ++i) tokens.push_back(BlockToken(now, i));
  }
  const size_t before = tokens.size();
  for (const Piece& piece : pieces) {
    const uint64_t seed = BlockSeed(options_.seed, piece.id);
    for (uint64_t i = 0; i < piece.tokens; ++i) tokens.push_back(BlockToken(seed, i));
  }
  CAIRN_CHECK(tokens.size() - before <= options_.prompt_tokens_max);
  return TracePrompt::FromTokens(std::move(tokens));
}

TraceRequest GeneratedTrace::NextTurn(const Kind& kind, std::vector<Conversation>* open) {
  Conversation& conversation = (*open)[Uniform(0, open->size() - 1)];
  const Piece asked = NewPiece(kind.asked_least, kind.asked_most);
  if (conversation.tokens + asked.tokens > options_.prompt_tokens_max) conversation = {};
  const auto add = [&conversation](const Piece& piece) {
    conversation.pieces.push_back(piece);
    conversation.tokens += piece.tokens;
  };
  if (conversation.pieces.empty()) {
    const uint64_t opening = kind.first_piece_id + Uniform(0, kind.openings - 1);
    add(FixedPiece(opening, kind.opening_least, kind.opening_most));
  }
  add(asked);
  TraceRequest request;
  request.prompt = PromptOf(conversation.pieces);
  const Piece answered = NewPiece(kind.answered_least, kind.answered_most);
  request.output_tokens = answered.tokens;
  add(answered);
  if (Uniform(1, kind.turns_to_an_end) == 1) conversation = {};
  return request;
}

TraceRequest GeneratedTrace::NextRetrieval() {
  std::vector<Piece> pieces = {{kRetrievalPromptId, kRetrievalPromptTokens}};
  const uint64_t documents = Uniform(kDocumentsLeast, kDocumentsMost);
  for (uint64_t i = 0; i < documents; ++i) {
    // The least of three even choices: low numbers are asked for most.
    uint64_t document = kDocuments;
    for (int choice = 0; choice < 3; ++choice) {
      document = std::min(document, Uniform(0, kDocuments - 1));
    }
    pieces.push_back(FixedPiece(kDocumentId + document, kDocumentTokensLeast, kDocumentTokensMost));
  }
  pieces.push_back(NewPiece(16, 100));
  TraceRequest request;
  request.prompt = PromptOf(pieces);
  request.output_tokens = Uniform(32, 300);
  return request;
}

absl::StatusOr<std::optional<TraceRequest>> GeneratedTrace::Read() {
  constexpr Kind kChat = {.first_piece_id = kChatOpeningId,
                          .openings = 4,
                          .opening_least = 256,
                          .opening_most = 1024,
                          .asked_least = 16,
                          .asked_most = 400,
                          .answered_least = 32,
                          .answered_most = 600,
                          .turns_to_an_end = 8};
  constexpr Kind kAgent = {.first_piece_id = kAgentOpeningId,
                           .openings = 3,
                           .opening_least = 2048,
                           .opening_most = 4096,
                           .asked_least = 32,
                           .asked_most = 1200,
                           .answered_least = 16,
                           .answered_most = 200,
                           .turns_to_an_end = 48};
  if (requests_made_ == options_.requests) return std::nullopt;
  ++requests_made_;
  const uint64_t weights =
      uint64_t{options_.chat_weight} + options_.retrieval_weight + options_.agent_weight;
  const uint64_t choice = Uniform(0, weights - 1);
  TraceRequest request;
  if (choice < options_.chat_weight) {
    request = NextTurn(kChat, &chats_);
  } else if (choice < weights - options_.agent_weight) {
    request = NextRetrieval();
  } else {
    request = NextTurn(kAgent, &tasks_);
  }
  constexpr uint64_t kGapSteps = 2000;  // Even, so that half of it is the mean.
  request.arrival_s = now_s_;
  now_s_ += static_cast<double>(Uniform(0, kGapSteps)) /
            (static_cast<double>(kGapSteps / 2) * options_.requests_per_second);
  return request;
}

}  // namespace cairn::replay
