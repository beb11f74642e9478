// Requests of fixed seeds: what must repeat, what must differ, what must stay within bounds, and
// that prompts share as the kinds say.
#include "client/replay/generated_trace.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "client/replay/block_token.h"
#include "client/replay/cache_oracles.h"
#include "tests/client/replay/trace_file.h"

namespace cairn::replay {
namespace {

using ::testing::HasSubstr;

std::vector<TraceRequest> Generate(const GeneratedTraceOptions& options) {
  auto trace = GeneratedTrace::Make(options);
  EXPECT_TRUE(trace.ok()) << trace.status();
  if (!trace.ok()) return {};
  EXPECT_EQ((*trace)->block_tokens(), 0u);
  return *ReadAll(trace->get());
}

// One number for all that requests say.
uint64_t DigestOf(const std::vector<TraceRequest>& requests) {
  uint64_t digest = 0;
  for (const TraceRequest& request : requests) {
    digest = SplitMix64(digest ^ static_cast<uint64_t>(request.arrival_s * 1e6));
    digest = SplitMix64(digest ^ request.output_tokens);
    for (const uint32_t token : request.prompt.Tokens()) digest = SplitMix64(digest ^ token);
  }
  return digest;
}

double IdealHitRate(const std::vector<TraceRequest>& requests) {
  CacheOracles oracles(16, 0);
  for (const TraceRequest& request : requests) EXPECT_TRUE(oracles.Observe(request.prompt).ok());
  return static_cast<double>(oracles.ideal_hit_tokens()) /
         static_cast<double>(oracles.prompt_tokens());
}

TEST(GeneratedTrace, TheSameOptionsGiveTheSameRequestsInEveryBuild) {
  const auto requests = Generate({.seed = 7, .requests = 100});
  EXPECT_EQ(requests.size(), 100u);
  EXPECT_EQ(DigestOf(requests), DigestOf(Generate({.seed = 7, .requests = 100})));
  EXPECT_EQ(DigestOf(requests), 5839459047682103934u);
}

TEST(GeneratedTrace, MoreRequestsBeginWithTheSameOnes) {
  auto requests = Generate({.requests = 300});
  requests.resize(100);
  EXPECT_EQ(DigestOf(requests), DigestOf(Generate({.requests = 100})));
}

TEST(GeneratedTrace, AnotherSeedSharesNoBlock) {
  CacheOracles oracles(16, 0);
  for (const auto& request : Generate({.seed = 1, .requests = 200})) {
    ASSERT_TRUE(oracles.Observe(request.prompt).ok());
  }
  const uint64_t hits = oracles.ideal_hit_blocks();
  CacheOracles alone(16, 0);
  for (const auto& request : Generate({.seed = 2, .requests = 200})) {
    ASSERT_TRUE(oracles.Observe(request.prompt).ok());
    ASSERT_TRUE(alone.Observe(request.prompt).ok());
  }
  EXPECT_EQ(oracles.ideal_hit_blocks(), hits + alone.ideal_hit_blocks());
}

TEST(GeneratedTrace, StaysWithinItsBounds) {
  const GeneratedTraceOptions options = {.requests = 1000, .prompt_tokens_max = 8192};
  const auto requests = Generate(options);
  double last_s = 0;
  uint64_t longest = 0;
  for (const TraceRequest& request : requests) {
    longest = std::max(longest, request.input_tokens());
    EXPECT_GT(request.output_tokens, 0u);
    EXPECT_GE(request.arrival_s, last_s);
    last_s = request.arrival_s;
  }
  EXPECT_LE(longest, 8192u);
  EXPECT_GT(longest, 7000u);
  EXPECT_NEAR(last_s, 1000 / options.requests_per_second, 5);
}

TEST(GeneratedTrace, EachKindSharesAsMuchAsItsTrafficDoes) {
  const double chat = IdealHitRate(Generate({.retrieval_weight = 0, .agent_weight = 0}));
  const double retrieval = IdealHitRate(Generate({.chat_weight = 0, .agent_weight = 0}));
  const double agent = IdealHitRate(Generate({.chat_weight = 0, .retrieval_weight = 0}));
  EXPECT_GT(chat, 0.6);
  EXPECT_LT(chat, 0.9);
  EXPECT_GT(retrieval, 0.2);
  EXPECT_LT(retrieval, 0.6);
  EXPECT_GT(agent, 0.85);
  EXPECT_LT(agent, 0.99);
}

TEST(GeneratedTrace, RefusesOptionsOutOfRangeByName) {
  const std::pair<GeneratedTraceOptions, const char*> bad[] = {
      {{.chat_weight = 0, .retrieval_weight = 0, .agent_weight = 0}, "weights"},
      {{.agent_weight = 1001}, "1001"},
      {{.prompt_tokens_max = 8191}, "prompt_tokens_max is 8191"},
      {{.prompt_tokens_max = 1u << 31}, "prompt_tokens_max is 2147483648"},
      {{.requests_per_second = 0}, "requests_per_second is 0"},
      {{.requests_per_second = std::numeric_limits<double>::quiet_NaN()}, "requests_per_second"}};
  for (const auto& [options, reason] : bad) {
    const absl::Status status = GeneratedTrace::Make(options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << reason;
    EXPECT_THAT(std::string(status.message()), HasSubstr(reason));
  }
}

TEST(GeneratedTrace, ATimestampIsAtTheSamePlaceOfEveryPromptAndOfNoneTwice) {
  GeneratedTraceOptions options;
  options.requests = 50;
  options.timestamp_tokens = 3;
  auto trace = *GeneratedTrace::Make(options);
  options.timestamp_tokens = 0;
  auto without = *GeneratedTrace::Make(options);
  constexpr uint32_t kBefore = GeneratedTrace::kTimestampPrefixTokens;
  std::vector<uint32_t> first;
  std::set<std::vector<uint32_t>> stamps;
  for (uint64_t i = 0; i < options.requests; ++i) {
    const std::vector<uint32_t> tokens = (**trace->Next()).prompt.Tokens();
    if (first.empty()) first = tokens;
    EXPECT_TRUE(std::equal(first.begin(), first.begin() + kBefore, tokens.begin()));
    stamps.insert({tokens.begin() + kBefore, tokens.begin() + kBefore + 3});
    EXPECT_EQ(std::vector<uint32_t>(tokens.begin() + kBefore + 3, tokens.end()),
              (**without->Next()).prompt.Tokens());
  }
  EXPECT_EQ(stamps.size(), options.requests);
  options.timestamp_tokens = GeneratedTrace::kTimestampTokensMax + 1;
  EXPECT_EQ(GeneratedTrace::Make(options).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace cairn::replay
