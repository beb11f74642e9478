// The main job in small: traces through the real core and policy, model nodes and model workers, on
// a fake clock. With CAIRN_TRACE_DIR naming a folder of the published traces, the conversation
// trace too; always a generated workload. What an unlimited cache hits is the ideal.
#include "tests/router/core/closed_loop.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "client/replay/block_ids.h"
#include "client/replay/block_token.h"
#include "client/replay/cache_oracles.h"
#include "client/replay/generated_trace.h"
#include "client/replay/open_trace.h"
#include "common/base/check.h"

namespace cairn::router {
namespace {

struct Workload {
  uint32_t block_tokens = 0;
  std::vector<LoopRequest> requests;
  double ideal_hit_rate = 0;
};

// Keys that chain, as real ones do, without the cost of real ones.
std::vector<BlockKey> ChainedKeys(uint64_t root, const std::vector<replay::IdRun>& runs) {
  std::vector<BlockKey> keys;
  uint64_t chain[2] = {root, ~root};
  static_assert(sizeof(chain) == kKeyBytes);
  for (const replay::IdRun& run : runs) {
    for (uint64_t i = 0; i < run.count; ++i) {
      chain[0] = replay::SplitMix64(chain[0] ^ replay::SplitMix64(run.first + i));
      chain[1] = replay::SplitMix64(chain[1] + chain[0]);
      std::memcpy(keys.emplace_back().bytes.data(), chain, kKeyBytes);
    }
  }
  return keys;
}

Workload Load(replay::TraceReader* trace, uint32_t block_tokens) {
  Workload workload;
  workload.block_tokens = block_tokens;
  replay::BlockIds ids(block_tokens);
  replay::CacheOracles oracles(block_tokens, 0);
  while (true) {
    const auto request = trace->Next();
    CAIRN_CHECK_OK(request.status());
    if (!request->has_value()) break;
    const replay::TracePrompt& prompt = (*request)->prompt;
    CAIRN_CHECK_OK(oracles.Observe(prompt).status());
    const auto runs = ids.RunsOf(prompt);
    CAIRN_CHECK_OK(runs.status());
    workload.requests.push_back({ChainedKeys(prompt.name_space(), *runs), prompt.token_count()});
  }
  workload.ideal_hit_rate = static_cast<double>(oracles.ideal_hit_tokens()) /
                            static_cast<double>(oracles.prompt_tokens());
  return workload;
}

const Workload& Generated() {
  static const auto* const workload = [] {
    replay::GeneratedTraceOptions options;
    options.requests = 1000;
    auto trace = replay::GeneratedTrace::Make(options);
    CAIRN_CHECK_OK(trace.status());
    return new Workload(Load(trace->get(), 16));
  }();
  return *workload;
}

LoopResult RunLoop(const Workload& workload, LoopOptions options) {
  options.block_tokens = workload.block_tokens;
  ClosedLoop loop(options);
  const LoopResult result = loop.Run(workload.requests);
  EXPECT_EQ(result.requests, workload.requests.size());
  EXPECT_TRUE(result.all_exact);
  EXPECT_FALSE(result.stale_alarm);
  ::testing::Test::RecordProperty("hit_rate", std::to_string(result.HitRate()));
  ::testing::Test::RecordProperty("busiest_over_mean", std::to_string(result.busiest_over_mean));
  return result;
}

// A block of 16 tokens takes less than one of 512.
LoopOptions SmallBlocks() {
  LoopOptions options;
  options.block_time = absl::Microseconds(1);
  return options;
}

TEST(ClosedLoopTest, GeneratedWorkloadHitsAlmostAllThatCanBeHitAndSpreads) {
  const LoopResult result = RunLoop(Generated(), SmallBlocks());
  EXPECT_GE(result.HitRate(), Generated().ideal_hit_rate - 0.01);
  EXPECT_LE(result.HitRate(), Generated().ideal_hit_rate);
  EXPECT_LE(result.busiest_over_mean, 1.10);
}

TEST(ClosedLoopTest, AFeedThatIsLateCostsAlmostNothing) {
  LoopOptions options = SmallBlocks();
  options.feed_delay = absl::Milliseconds(100);  // Dozens of requests.
  const LoopResult result = RunLoop(Generated(), options);
  EXPECT_GE(result.HitRate(), Generated().ideal_hit_rate - 0.01);
  EXPECT_LE(result.busiest_over_mean, 1.10);
}

TEST(ClosedLoopTest, WithoutSpeculativeMarksALateFeedCostsHits) {
  LoopOptions options = SmallBlocks();
  options.feed_delay = absl::Milliseconds(100);
  options.router.speculation.marks_max = 0;
  options.router.speculation.linger = absl::ZeroDuration();
  EXPECT_LE(RunLoop(Generated(), options).HitRate(), Generated().ideal_hit_rate - 0.02);
}

TEST(ClosedLoopTest, WorkersThatTakeTimeToComputeAreKeptEquallyBusy) {
  LoopOptions options = SmallBlocks();
  options.compute_tokens_per_second = 15'000;
  options.feed_delay = absl::Milliseconds(500);
  const LoopResult result = RunLoop(Generated(), options);
  EXPECT_GE(result.HitRate(), Generated().ideal_hit_rate - 0.01);
  EXPECT_LE(result.busiest_over_mean, 1.10);
}

TEST(ClosedLoopTest, TheSameSeedGivesTheSameRun) {
  const LoopResult first = RunLoop(Generated(), SmallBlocks());
  const LoopResult second = RunLoop(Generated(), SmallBlocks());
  EXPECT_EQ(first.hit_tokens, second.hit_tokens);
  EXPECT_EQ(first.busiest_over_mean, second.busiest_over_mean);
}

TEST(ClosedLoopTest, ConversationTraceIfAtHand) {
  const char* const folder = std::getenv("CAIRN_TRACE_DIR");
  const std::filesystem::path path = std::filesystem::path(folder == nullptr ? "" : folder) /
                                     "mooncake_conversation_trace.jsonl.gz";
  if (folder == nullptr || !std::filesystem::exists(path)) return;
  auto trace = replay::OpenTrace(path.string());
  ASSERT_TRUE(trace.ok()) << trace.status();
  const Workload workload = Load(trace->get(), 512);
  EXPECT_NEAR(workload.ideal_hit_rate, 0.3734, 0.00005);
  const LoopOptions instant;
  LoopOptions late, computing;
  late.feed_delay = absl::Milliseconds(100);
  computing.compute_tokens_per_second = 15'000;
  computing.feed_delay = absl::Seconds(1);
  for (const LoopOptions& options : {instant, late, computing}) {
    const LoopResult result = RunLoop(workload, options);
    EXPECT_GE(result.HitRate(), workload.ideal_hit_rate - 0.015);
    EXPECT_LE(result.busiest_over_mean, 1.06);
  }
}

}  // namespace
}  // namespace cairn::router
