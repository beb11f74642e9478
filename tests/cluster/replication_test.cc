// Method: four real nodes and a router; one prefix, computed once, begins every prompt, and each
// prompt has something of its own to compute. Without copies few nodes do the work; with them all
// take their share, and still hit.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "cairn/v1/cache_node.grpc.pb.h"
#include "common/rpc/channel_options.h"
#include "tests/cluster/cluster_fixture.h"

namespace cairn::testing {
namespace {

constexpr uint32_t kIdTokens = 64;
constexpr uint64_t kPrefixBlocks = 64;  // 4,096 tokens: half a second to compute.
constexpr uint64_t kOwnBlocks = 8;      // 62 ms.
constexpr uint64_t kRequests = 160;

class OnePrefix final : public replay::TraceReader {
 public:
  explicit OnePrefix(uint64_t requests) : requests_(requests) {}
  uint32_t block_tokens() const override { return 0; }

 private:
  absl::StatusOr<std::optional<replay::TraceRequest>> Read() override {
    if (made_ == requests_) return std::optional<replay::TraceRequest>();
    replay::TraceRequest request;
    const uint64_t own = kPrefixBlocks + made_ * kOwnBlocks;
    ++made_;
    request.prompt =
        replay::TracePrompt::FromIds(0, kIdTokens, {{0, kPrefixBlocks}, {1000 + own, kOwnBlocks}},
                                     (kPrefixBlocks + kOwnBlocks) * kIdTokens);
    return std::optional<replay::TraceRequest>(std::move(request));
  }

  const uint64_t requests_;
  uint64_t made_ = 0;
};

class ReplicationTest : public ClusterTest {
 protected:
  ReplicationTest()
      : peers_(absl::StrCat(::testing::TempDir(), "/cairn_replication_peers_",
                            ::testing::UnitTest::GetInstance()->current_test_info()->name())) {}

  void StartCluster(const std::string& bytes_per_second) {
    WritePeers("");
    ASSERT_NO_FATAL_FAILURE(AddNodes(4, {absl::StrCat("--peer-file=", peers_)}));
    std::string lines;
    for (size_t i = 0; i < 4; ++i) {
      absl::StrAppend(&lines, "node-", i + 1, " ", node(i).address(), "\n");
    }
    WritePeers(lines);
    ASSERT_NO_FATAL_FAILURE(StartRouter(
        NodeAddresses(), {absl::StrCat("--replicate-bytes-per-second=", bytes_per_second),
                          "--replicate-bytes-per-token=16"}));
    for (size_t i = 0; i < 4; ++i) {
      ASSERT_NO_FATAL_FAILURE(AwaitPeers(i, absl::StrCat("node-", (i + 1) % 4 + 1)));
    }
  }
  void WritePeers(const std::string& lines) {
    std::ofstream(peers_ + ".new") << lines;
    ASSERT_EQ(std::rename((peers_ + ".new").c_str(), peers_.c_str()), 0);
  }
  // The node has read the list.
  void AwaitPeers(size_t index, const std::string& peer) {
    const NamespaceHandle space = SmallBlocksNamespace();
    const auto client = Target().nodes->Get(node(index).address());
    ASSERT_TRUE((*client)->RegisterNamespace(space.name(), space.fields()).ok());
    const auto stub = v1::CacheNode::NewStub(grpc::CreateCustomChannel(
        node(index).address(), grpc::InsecureChannelCredentials(), MakeChannelArguments()));
    v1::PullBlocksRequest request;
    request.set_fingerprint(std::string(space.fingerprint().view()));
    request.set_source(peer);
    request.set_keys(std::string(16, 'x'));
    grpc::StatusCode code = grpc::StatusCode::FAILED_PRECONDITION;
    while (code == grpc::StatusCode::FAILED_PRECONDITION) {
      grpc::ClientContext context;
      v1::PullBlocksResponse response;
      code = stub->PullBlocks(&context, request, &response).error_code();
    }
    ASSERT_EQ(code, grpc::StatusCode::OK);
  }
  replay::ReplayReport Run(uint32_t workers, uint64_t requests) {
    replay::ReplayOptions options = SmallBlocks();
    options.workers = workers;
    options.compute_tokens_per_second = 8192;
    StoppableWait wait;
    replay::ReplayRunner runner(options, Target(), &wait, nullptr);
    OnePrefix trace(requests);
    const absl::StatusOr<replay::ReplayReport> report = runner.Run(&trace);
    EXPECT_TRUE(report.ok()) << report.status();
    if (!report.ok()) return {};
    EXPECT_EQ(report->failed_requests, 0u) << runner.first_failure();
    EXPECT_EQ(report->wrong_bytes, 0u);
    return *report;
  }
  // Nodes that hold all of the prefix, as the router knows.
  size_t Holders() {
    OnePrefix trace(1);
    const Prompt prompt = KeysOf(**trace.Next());
    const auto begin = prompt.keys().begin();
    const auto answer = router_client().LookupPrefix(
        SmallBlocksNamespace(), Prompt::FromKeys({begin, begin + kPrefixBlocks}));
    EXPECT_TRUE(answer.ok()) << answer.status();
    size_t holders = 0;
    for (const HolderPrefix& holder : answer->holders) holders += holder.blocks == kPrefixBlocks;
    return holders;
  }
  replay::ReplayReport RunHot(const std::string& bytes_per_second) {
    StartCluster(bytes_per_second);
    if (HasFatalFailure()) return {};
    Run(1, 1);  // The prefix is there, once.
    EXPECT_TRUE(AwaitExact());
    const replay::ReplayReport report = Run(40, kRequests);
    std::cout << report.ToTable() << "  holders " << Holders() << "\n";
    return report;
  }

  const std::string peers_;
};

// Affinity ends where waiting costs ten times what the hit saves: then one more computes it.
TEST_F(ReplicationTest, WithoutCopiesFewDoTheWork) {
  const replay::ReplayReport report = RunHot("0");
  EXPECT_GT(report.busiest_over_mean, 1.6);
  EXPECT_LE(Holders(), 3u);
}

TEST_F(ReplicationTest, WithCopiesAllTakeTheirShareAndHit) {
  const replay::ReplayReport report = RunHot("1MiB");
  EXPECT_LT(report.busiest_over_mean, 1.6);
  EXPECT_GE(Holders(), 3u);
  // All but the prefix's own first computation, which was before.
  EXPECT_GE(report.hit_blocks, kRequests * kPrefixBlocks * 95 / 100);
  // What was copied is all that more than one node has of the prefix: far under the budget.
  uint64_t blocks = 0;
  for (size_t i = 0; i < 4; ++i) blocks += Describe(i).blocks();
  EXPECT_LE((blocks - kPrefixBlocks - (kRequests + 1) * kOwnBlocks) * 1024,
            absl::ToDoubleSeconds(report.elapsed) * (1 << 20) + (1 << 20));
}

}  // namespace
}  // namespace cairn::testing
