// Method: two real nodes; one pulls slowly from the other, which is killed in the middle, comes
// back empty, or is asked by a node whose memory is too small. What came before is there, byte for
// byte, nothing else is, and nothing is held.
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "cairn/v1/cache_node.grpc.pb.h"
#include "client/replay/replay_namespace.h"
#include "client/replay/stampede_trace.h"
#include "common/rpc/channel_options.h"
#include "common/rpc/id_conversion.h"
#include "tests/cluster/cluster_fixture.h"

namespace cairn::testing {
namespace {

constexpr uint32_t kBlockTokens = 64;
constexpr uint64_t kBlockBytes = 4096;
constexpr uint64_t kBlocks = 1024;  // 4 MiB.

class PullTest : public ClusterTest {
 protected:
  PullTest()
      : peers_(absl::StrCat(::testing::TempDir(), "/cairn_pull_peers_", getpid(), "_",
                            ::testing::UnitTest::GetInstance()->current_test_info()->name())),
        space_(*replay::MakeReplayNamespace(kBlockTokens, kBlockBytes)) {}

  // node(0) has the prompt; node(1) pulls.
  void StartNodes(const std::vector<std::string>& flags) {
    WritePeers("");
    ASSERT_NO_FATAL_FAILURE(AddNodes(1));
    WritePeers(absl::StrCat("node-1 ", node(0).address(), "\n"));
    std::vector<std::string> all = {absl::StrCat("--peer-file=", peers_)};
    all.insert(all.end(), flags.begin(), flags.end());
    ASSERT_NO_FATAL_FAILURE(AddNodes(1, all));
    replay::ReplayReport report = ReplayAt(0);
    ASSERT_EQ(report.stored_blocks, kBlocks);
    const auto client = nodes_.Get(node(1).address());
    ASSERT_TRUE((*client)->RegisterNamespace(space_.name(), space_.fields()).ok());
    const replay::TraceRequest request = **Trace()->Next();
    const std::vector<uint32_t> tokens = request.prompt.Tokens();
    const Region region{.scope = {"public", "", ""}, .tokens = tokens, .external_ids = {}};
    keys_ = Prompt::Make(Sha256BlockHasher(), space_, {&region, 1})->keys();
    ASSERT_EQ(keys_.size(), kBlocks);
  }
  void WritePeers(const std::string& lines) {
    std::ofstream(peers_ + ".new") << lines;
    ASSERT_EQ(std::rename((peers_ + ".new").c_str(), peers_.c_str()), 0);
  }
  static std::unique_ptr<replay::StampedeTrace> Trace() {
    return *replay::StampedeTrace::Make({.requests = 1, .prompt_tokens = kBlocks * kBlockTokens});
  }
  // One worker with the prompt: it reads and checks what is there, and stores the rest.
  replay::ReplayReport ReplayAt(size_t index) {
    replay::ReplayOptions options;
    options.workers = 1;
    options.block_tokens = kBlockTokens;
    options.block_bytes = kBlockBytes;
    StoppableWait wait;
    replay::ReplayRunner runner(
        options, {.router = nullptr, .node_address = node(index).address(), .nodes = &nodes_},
        &wait, nullptr);
    const auto trace = Trace();
    const absl::StatusOr<replay::ReplayReport> report = runner.Run(trace.get());
    EXPECT_TRUE(report.ok()) << report.status();
    if (!report.ok()) return {};
    EXPECT_EQ(report->wrong_bytes, 0u);
    return *report;
  }
  v1::PullBlocksResponse Pull(uint32_t wait_ms) {
    const auto stub = v1::CacheNode::NewStub(grpc::CreateCustomChannel(
        node(1).address(), grpc::InsecureChannelCredentials(), MakeChannelArguments()));
    v1::PullBlocksRequest request;
    request.set_fingerprint(std::string(space_.fingerprint().view()));
    request.set_source("node-1");
    request.set_keys(KeysToProto(keys_));
    request.set_wait_ms(wait_ms);
    v1::PullBlocksResponse response;
    grpc::ClientContext context;
    const grpc::Status status = stub->PullBlocks(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  // A call that is there from the begin to the end of a pull, and what it was told.
  v1::PullBlocksResponse Settled() {
    v1::PullBlocksResponse response;
    do {
      response = Pull(10'000);
    } while (response.outcomes_size() > 0 && !response.complete());
    return response;
  }
  static uint64_t CountOf(const v1::PullBlocksResponse& response, v1::PullOutcome outcome) {
    return static_cast<uint64_t>(
        std::count(response.outcomes().begin(), response.outcomes().end(), outcome));
  }
  bool AwaitBlocksHere(uint64_t blocks) {
    const absl::Time end = absl::Now() + kSoon;
    while (Describe(1).blocks() < blocks) {
      if (absl::Now() > end) return false;
    }
    return true;
  }
  void ExpectNothingHeldHere() {
    const v1::DescribeResponse here = Describe(1);
    EXPECT_EQ(here.pins(), 0u);
    EXPECT_EQ(here.load().host_reserved_bytes(), 0u);
  }

  const std::string peers_;
  const NamespaceHandle space_;
  SystemClientParts client_parts_;
  NodeClients nodes_{ClientOptions(), client_parts_.parts()};
  std::vector<BlockKey> keys_;
};

TEST_F(PullTest, ASourceThatDiesInTheMiddleLeavesWhatCameAndNothingHeld) {
  ASSERT_NO_FATAL_FAILURE(StartNodes({"--pull-bytes-per-second=1MiB"}));
  EXPECT_FALSE(Pull(0).complete());
  ASSERT_TRUE(AwaitBlocksHere(200));
  node(0).Kill9();
  const v1::PullBlocksResponse ended = Settled();
  EXPECT_GE(CountOf(ended, v1::PULL_OUTCOME_SOURCE_FAILED), 1u);
  EXPECT_FALSE(ended.detail().empty());
  const uint64_t here = Describe(1).blocks();
  EXPECT_GE(here, 200u);
  EXPECT_LT(here, kBlocks);
  ExpectNothingHeldHere();
  // It comes back with nothing: that is a miss, and no error.
  ASSERT_NO_FATAL_FAILURE(RestartNode(0));
  const v1::PullBlocksResponse missing = Settled();
  EXPECT_EQ(CountOf(missing, v1::PULL_OUTCOME_PRESENT), here);
  EXPECT_EQ(missing.outcomes(static_cast<int>(here)), v1::PULL_OUTCOME_MISSING);
  EXPECT_EQ(ReplayAt(1).hit_blocks, here);
}

TEST_F(PullTest, ASourceThatStopsSendingIsGivenUpSoon) {
  ASSERT_NO_FATAL_FAILURE(StartNodes({"--pull-bytes-per-second=1MiB"}));
  EXPECT_FALSE(Pull(0).complete());
  ASSERT_TRUE(AwaitBlocksHere(200));
  node(0).Stop();
  const absl::Time begin = absl::Now();
  const v1::PullBlocksResponse ended = Settled();
  EXPECT_LT(absl::Now() - begin, absl::Minutes(1)) << "of the two that a transfer may take";
  EXPECT_GE(CountOf(ended, v1::PULL_OUTCOME_SOURCE_FAILED), 1u);
  EXPECT_THAT(ended.detail(), ::testing::HasSubstr("sent nothing"));
  ExpectNothingHeldHere();
  node(0).Continue();
  EXPECT_EQ(CountOf(Settled(), v1::PULL_OUTCOME_SOURCE_FAILED), 0u);
  EXPECT_EQ(ReplayAt(1).hit_blocks, kBlocks);
}

TEST_F(PullTest, APullTakesAsLongAsItsCapSaysAndGoesOnWithoutItsCaller) {
  ASSERT_NO_FATAL_FAILURE(StartNodes({"--pull-bytes-per-second=2MiB"}));
  const absl::Time begin = absl::Now();
  EXPECT_FALSE(Pull(0).complete());
  ASSERT_TRUE(AwaitBlocksHere(kBlocks));
  const double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  EXPECT_GE(seconds, 0.95) << "4 MiB at 2 MiB a second, but for the first and the last frame";
  EXPECT_EQ(CountOf(Settled(), v1::PULL_OUTCOME_PRESENT), kBlocks);
  ExpectNothingHeldHere();
  EXPECT_EQ(ReplayAt(1).hit_blocks, kBlocks);
}

TEST_F(PullTest, ANodeThatHasNoRoomSaysSoAndKeepsWhatFits) {
  ASSERT_NO_FATAL_FAILURE(StartNodes({"--host-memory=2MiB", "--eviction-policy=lru"}));
  const v1::PullBlocksResponse response = Settled();
  const uint64_t here = CountOf(response, v1::PULL_OUTCOME_PULLED);
  EXPECT_LT(here, kBlocks);
  EXPECT_GE(CountOf(response, v1::PULL_OUTCOME_NO_SPACE) +
                CountOf(response, v1::PULL_OUTCOME_QUOTA) +
                CountOf(response, v1::PULL_OUTCOME_DECLINED),
            1u);
  ExpectNothingHeldHere();
}

}  // namespace
}  // namespace cairn::testing
