// Method: real nodes and a router; 64 workers ask for one cold prompt at once. One computes, the
// others wait for it and hit. Then the writer that was first is gone: one of those who wait takes
// over, and no more.
#include <thread>

#include "absl/strings/str_cat.h"
#include "client/replay/stampede_trace.h"
#include "tests/cluster/cluster_fixture.h"

namespace cairn::testing {
namespace {

constexpr uint32_t kWorkers = 64;
constexpr uint64_t kPromptTokens = 4096;

class StampedeTest : public ClusterTest {
 protected:
  void StartCluster() {
    ASSERT_NO_FATAL_FAILURE(AddNodes(4));
    ASSERT_NO_FATAL_FAILURE(StartRouter(NodeAddresses()));
  }
  // Computing the prompt takes about half a second.
  static replay::ReplayOptions Options() {
    replay::ReplayOptions options = SmallBlocks();
    options.workers = kWorkers;
    options.compute_tokens_per_second = 2 * kPromptTokens;
    options.worker.read.wait_for_writers = kSoon;
    return options;
  }
  static std::unique_ptr<replay::StampedeTrace> Stampede(uint64_t seed) {
    return *replay::StampedeTrace::Make(
        {.requests = kWorkers, .prompt_tokens = kPromptTokens, .seed = seed});
  }
  replay::ReplayReport Run(uint64_t seed) {
    StoppableWait wait;
    replay::ReplayRunner runner(Options(), Target(), &wait, nullptr);
    const auto trace = Stampede(seed);
    const absl::StatusOr<replay::ReplayReport> report = runner.Run(trace.get());
    EXPECT_TRUE(report.ok()) << report.status();
    if (!report.ok()) return {};
    EXPECT_EQ(report->requests, kWorkers);
    EXPECT_EQ(report->failed_requests, 0u) << runner.first_failure();
    EXPECT_EQ(report->wrong_bytes, 0u);
    return *report;
  }
};

TEST_F(StampedeTest, OneOfManyComputesAndTheOthersHit) {
  ASSERT_NO_FATAL_FAILURE(StartCluster());
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const replay::ReplayReport report = Run(seed);
    EXPECT_EQ(report.stampede_computations, 1u) << report.ToTable();
    EXPECT_EQ(report.hit_tokens, (kWorkers - 1) * kPromptTokens);
    EXPECT_EQ(report.stored_blocks, kPromptTokens / 64);
  }
}

// What a worker that was killed leaves behind is a reservation that nobody fills or ends.
TEST_F(StampedeTest, WhereTheFirstWriterIsGoneOneTakesOver) {
  ASSERT_NO_FATAL_FAILURE(StartCluster());
  const replay::TraceRequest request = **Stampede(9)->Next();
  const std::vector<uint32_t> tokens = request.prompt.Tokens();
  const NamespaceHandle space = SmallBlocksNamespace();
  const Region region{.scope = {"public", "", ""}, .tokens = tokens, .external_ids = {}};
  const Prompt prompt = *Prompt::Make(Sha256BlockHasher(), space, {&region, 1});
  std::vector<WriteSession> dead;
  for (const std::string& address : NodeAddresses()) {
    const std::shared_ptr<CacheNodeClient> node = *Target().nodes->Get(address);
    ASSERT_TRUE(node->RegisterNamespace(space.name(), space.fields()).ok());
    absl::StatusOr<WriteSession> session =
        node->Reserve(space, prompt, 0, prompt.block_count(),
                      {.token_ttl = absl::Seconds(2), .abort_on_destroy = false});
    ASSERT_TRUE(session.ok()) << session.status();
    dead.push_back(*std::move(session));
  }
  const replay::ReplayReport report = Run(9);
  EXPECT_EQ(report.stampede_computations, 1u) << "beside that of the worker that is gone";
  EXPECT_EQ(report.hit_tokens, (kWorkers - 1) * kPromptTokens);
}

}  // namespace
}  // namespace cairn::testing
