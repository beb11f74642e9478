// Method: two whole nodes in one process that know their callers by tokens. What one has is pulled
// into the other over gRPC, as a worker, a router or a stranger asks; then it is read there.
#include <gmock/gmock.h>

#include <cstdio>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/hex.h"
#include "common/identity/sha256.h"
#include "common/rpc/channel_options.h"
#include "common/rpc/id_conversion.h"
#include "tests/cache_node/service/node_fixture.h"

namespace cairn::node {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kWorker[] = "the-token-of-a-worker";
constexpr char kOther[] = "the-token-of-another-worker";
constexpr char kRouter[] = "the-token-of-a-router";
constexpr char kNode[] = "the-token-of-this-node";
constexpr size_t kBlocks = 6;

// The fixture's node is the source, "node-1".
class PullNodeTest : public NodeFixture {
 protected:
  PullNodeTest()
      : base_(absl::StrCat(::testing::TempDir(), "/cairn_pull_",
                           ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    Replace("access",
            "token:worker worker,admin acme\ntoken:other worker globex\n"
            "token:router router -\ntoken:node node *\n");
    Replace("tokens", absl::StrCat(Line("worker", kWorker), Line("other", kOther),
                                   Line("router", kRouter), Line("node", kNode)));
    Replace("token", kNode);
    tenant_ = "acme";
    token_ = kWorker;
    StartNode(Secured("node-1"));
    Replace("peers", absl::StrCat("node-1 ", node_->addresses().front(), "\n"));
    StartHere(/*bytes_per_second=*/0);
  }

  NodeConfig Secured(const std::string& id) const {
    NodeConfig config = SmallConfig();
    config.node_id = id;
    config.security.access_file = base_ + "access";
    config.security.token_file = base_ + "tokens";
    return config;
  }
  void StartHere(uint64_t bytes_per_second) {
    NodeConfig config = Secured("node-2");
    config.pull.peer_file = base_ + "peers";
    config.pull.security.token_file = base_ + "token";
    config.pull.bytes_per_second = ByteSize(bytes_per_second);
    here_stub_ = nullptr;
    here_ = nullptr;
    absl::StatusOr<std::unique_ptr<Node>> node = Node::Start(config);
    ASSERT_TRUE(node.ok()) << node.status();
    here_ = *std::move(node);
    here_stub_ = v1::CacheNode::NewStub(grpc::CreateCustomChannel(
        here_->addresses().front(), grpc::InsecureChannelCredentials(), MakeChannelArguments()));
    std::swap(stub_, here_stub_);
    Register(namespace_, "model");
    std::swap(stub_, here_stub_);
  }
  static std::string Line(const std::string& name, const std::string& token) {
    const Sha256Digest digest = Sha256(token);
    return absl::StrCat(name, " ",
                        ToHex({reinterpret_cast<const char*>(digest.data()), digest.size()}), "\n");
  }
  void Replace(const std::string& file, const std::string& text) {
    std::ofstream(base_ + file + ".new") << text;
    ASSERT_EQ(std::rename((base_ + file + ".new").c_str(), (base_ + file).c_str()), 0);
  }

  v1::PullBlocksRequest RequestOf(const TestPrompt& prompt, uint32_t wait_ms = 10'000) const {
    v1::PullBlocksRequest request;
    request.set_fingerprint(fingerprint_);
    request.set_source("node-1");
    request.set_keys(KeysToProto(prompt.keys));
    request.set_wait_ms(wait_ms);
    return request;
  }
  grpc::Status Pull(const v1::PullBlocksRequest& request, v1::PullBlocksResponse* response,
                    const std::string& token = kWorker) {
    std::unique_ptr<grpc::ClientContext> context = Context();
    context->AddMetadata("authorization", absl::StrCat("Bearer ", token));
    return here_stub_->PullBlocks(context.get(), request, response);
  }
  v1::PullBlocksResponse Pulled(const TestPrompt& prompt) {
    v1::PullBlocksResponse response;
    const grpc::Status status = Pull(RequestOf(prompt), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  // Until nothing of it is in hand.
  v1::PullBlocksResponse Settled(const TestPrompt& prompt) {
    v1::PullBlocksResponse response;
    do {
      response = Pulled(prompt);
    } while (!response.complete());
    return response;
  }
  TestPrompt PutThere(uint32_t seed, size_t blocks = kBlocks) {
    const TestPrompt prompt = MakePrompt(seed, blocks);
    Put(prompt);
    return prompt;
  }
  // All segments of all blocks, read here and checked.
  void ExpectReadable(const TestPrompt& prompt) {
    std::vector<v1::GetResponse> frames;
    ASSERT_TRUE(Get(GetRequestOf(prompt), &frames, here_stub_.get()).ok());
    EXPECT_EQ(Assemble(prompt, map_, frames).size(), prompt.keys.size() * map_.segment_count());
  }
  double Metric(const std::string& series) const {
    for (absl::string_view line : absl::StrSplit(here_->metrics().Text(), '\n')) {
      const std::vector<std::string> fields = absl::StrSplit(line, ' ');
      if (fields.size() == 2 && fields[0] == series) return std::stod(fields[1]);
    }
    return 0;
  }
  void ExpectNothingHeldHere() {
    const StoreStatus status = here_->store().Status();
    EXPECT_EQ(status.pins, 0u);
    EXPECT_EQ(status.reserved_bytes, 0u);
    EXPECT_EQ(Metric("cairn_pull_blocks_in_hand"), 0);
    EXPECT_TRUE(here_->store().Audit().ok());
  }

  const std::string base_;
  std::unique_ptr<Node> here_;
  std::unique_ptr<v1::CacheNode::Stub> here_stub_;
};

TEST_F(PullNodeTest, BlocksComeOverTheWireAndAreReadHere) {
  const TestPrompt prompt = PutThere(1);
  const v1::PullBlocksResponse response = Pulled(prompt);
  EXPECT_THAT(response.outcomes(), Each(v1::PULL_OUTCOME_PULLED));
  EXPECT_TRUE(response.complete());
  EXPECT_EQ(response.pulled_bytes(), kBlocks * map_.block_bytes());
  ExpectReadable(prompt);
  EXPECT_EQ(Metric("cairn_pull_bytes_total"), static_cast<double>(kBlocks * map_.block_bytes()));
  EXPECT_EQ(Metric("cairn_pull_blocks_total{outcome=\"pulled\"}"), kBlocks);
  EXPECT_THAT(Pulled(prompt).outcomes(), Each(v1::PULL_OUTCOME_PRESENT));
  ExpectNothingHeldHere();
}

TEST_F(PullNodeTest, CallsForTheSameBlocksShareOneTransfer) {
  StartHere(1 << 20);
  const TestPrompt prompt = PutThere(1, 200);
  constexpr size_t kCalls = 4;
  std::vector<v1::PullBlocksResponse> responses(kCalls);
  std::vector<std::thread> calls;
  for (size_t i = 0; i < kCalls; ++i) {
    calls.emplace_back([&, i] { responses[i] = Pulled(prompt); });
  }
  for (std::thread& call : calls) call.join();
  EXPECT_THAT(Settled(prompt).outcomes(), Each(v1::PULL_OUTCOME_PRESENT));
  EXPECT_EQ(Metric("cairn_pull_bytes_total"), static_cast<double>(200 * map_.block_bytes()));
  EXPECT_EQ(Metric("cairn_pull_blocks_total{outcome=\"pulled\"}"), 200);
  EXPECT_EQ(Metric("cairn_pull_dropped_bytes_total"), 0);
  ExpectReadable(prompt);
}

TEST_F(PullNodeTest, ACallThatDoesNotWaitOrGoesAwayStopsNothing) {
  const TestPrompt prompt = PutThere(1);
  v1::PullBlocksResponse response;
  ASSERT_TRUE(Pull(RequestOf(prompt, 0), &response).ok());
  EXPECT_EQ(response.outcomes_size(), static_cast<int>(kBlocks));
  EXPECT_THAT(Settled(prompt).outcomes(),
              Each(::testing::AnyOf(v1::PULL_OUTCOME_PULLED, v1::PULL_OUTCOME_PRESENT)));
  const TestPrompt other = PutThere(2);
  const std::unique_ptr<grpc::ClientContext> context = CallerContext();
  std::thread call([&] {
    v1::PullBlocksResponse answer;
    (void)here_stub_->PullBlocks(context.get(), RequestOf(other), &answer);
  });
  context->TryCancel();
  call.join();
  // It came to be taken or not; asked for again it is complete either way.
  EXPECT_THAT(Settled(other).outcomes(),
              Each(::testing::AnyOf(v1::PULL_OUTCOME_PULLED, v1::PULL_OUTCOME_PRESENT)));
  ExpectReadable(other);
  ExpectNothingHeldHere();
}

TEST_F(PullNodeTest, OnlyListedPeersByTheirNames) {
  const TestPrompt prompt = PutThere(1);
  v1::PullBlocksRequest request = RequestOf(prompt);
  v1::PullBlocksResponse response;
  for (const std::string& source :
       {node_->addresses().front(), std::string("node-9"), std::string()}) {
    request.set_source(source);
    const grpc::Status status = Pull(request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION) << source;
    EXPECT_THAT(status.error_message(), HasSubstr("no peer"));
  }
  request.set_source("node-2");
  EXPECT_EQ(Pull(request, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(PullNodeTest, TheListIsReadAgainAndAnotherNodeAtAPeersAddressIsNotBelieved) {
  const TestPrompt prompt = PutThere(1);
  Replace("peers", absl::StrCat("node-9 ", node_->addresses().front(), "\n"));
  v1::PullBlocksRequest request = RequestOf(prompt);
  request.set_source("node-9");
  v1::PullBlocksResponse response;
  while (Pull(request, &response).error_code() == grpc::StatusCode::FAILED_PRECONDITION) {
  }
  EXPECT_EQ(response.outcomes(0), v1::PULL_OUTCOME_SOURCE_FAILED);
  EXPECT_THAT(response.detail(), HasSubstr("another node answers"));
  EXPECT_EQ(Pull(RequestOf(prompt), &response).error_code(), grpc::StatusCode::FAILED_PRECONDITION)
      << "it left the list";
}

TEST_F(PullNodeTest, ATenantsBlocksAreItsWorkersAndItsRoutersToAskFor) {
  const TestPrompt prompt = PutThere(1);
  v1::PullBlocksRequest request = RequestOf(prompt);
  v1::PullBlocksResponse response;
  request.set_tenant("acme");
  EXPECT_EQ(Pull(request, &response, kOther).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Pull(request, &response, kNode).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  // As its own tenant it finds nothing, and is not told that there is something.
  request.set_tenant("");
  EXPECT_EQ(Pull(request, &response, kOther).error_code(), grpc::StatusCode::FAILED_PRECONDITION)
      << "the namespace is not its tenant's";
  EXPECT_EQ(Pull(request, &response, kRouter).error_code(), grpc::StatusCode::PERMISSION_DENIED)
      << "a router names the tenant";
  request.set_tenant("acme");
  ASSERT_TRUE(Pull(request, &response, kRouter).ok());
  EXPECT_THAT(response.outcomes(), Each(v1::PULL_OUTCOME_PULLED));
  ExpectReadable(prompt);
}

TEST_F(PullNodeTest, WhatTheSourceDoesNotGrantThisNodeIsNotPulled) {
  const TestPrompt prompt = PutThere(1);
  Replace("access", "token:worker worker,admin acme\ntoken:node node globex\n");
  v1::DescribeBlocksRequest describe;
  describe.set_fingerprint(fingerprint_);
  describe.set_keys(KeysToProto(prompt.keys));
  const auto denied = [&] {
    const std::unique_ptr<grpc::ClientContext> context = Context();
    context->AddMetadata("authorization", absl::StrCat("Bearer ", kNode));
    context->AddMetadata(kTenantMetadata, "acme");
    v1::DescribeBlocksResponse answer;
    return stub_->DescribeBlocks(context.get(), describe, &answer).error_code() ==
           grpc::StatusCode::PERMISSION_DENIED;
  };
  while (!denied()) {
  }
  const v1::PullBlocksResponse response = Pulled(prompt);
  EXPECT_EQ(response.outcomes(0), v1::PULL_OUTCOME_SOURCE_FAILED);
  EXPECT_THAT(response.detail(), HasSubstr("acme"));
  ExpectNothingHeldHere();
}

TEST_F(PullNodeTest, ASourceThatIsGoneOrHasNothingIsSaidSo) {
  const TestPrompt prompt = PutThere(1);
  const TestPrompt absent = MakePrompt(2, 2);
  EXPECT_THAT(Pulled(absent).outcomes(),
              ElementsAre(v1::PULL_OUTCOME_MISSING, v1::PULL_OUTCOME_SKIPPED));
  node_ = nullptr;
  const v1::PullBlocksResponse response = Settled(prompt);
  EXPECT_EQ(response.outcomes(0), v1::PULL_OUTCOME_SOURCE_FAILED);
  EXPECT_FALSE(response.detail().empty());
  EXPECT_GE(Metric("cairn_pull_source_failures_total"), 1);
  ExpectNothingHeldHere();
}

TEST_F(PullNodeTest, AFenceOfThisNodeKeepsOutWhatAPeerStillHas) {
  const TestPrompt prompt = PutThere(1);
  v1::PurgeWriterRequest purge;
  purge.set_writer("token:worker");
  v1::PurgeWriterResponse purged;
  ASSERT_TRUE(here_stub_->PurgeWriter(CallerContext().get(), purge, &purged).ok());
  EXPECT_EQ(Pulled(prompt).outcomes(0), v1::PULL_OUTCOME_FENCED);
  EXPECT_EQ(Metric("cairn_pull_bytes_total"), 0);
}

TEST_F(PullNodeTest, WrongCallsAreToldWhatToDo) {
  const TestPrompt prompt = MakePrompt(1, 2);
  const auto complaint = [&](const std::function<void(v1::PullBlocksRequest&)>& spoil) {
    v1::PullBlocksRequest request = RequestOf(prompt);
    spoil(request);
    v1::PullBlocksResponse response;
    const grpc::Status status = Pull(request, &response);
    return absl::StrCat(status.error_code(), " ", status.error_message());
  };
  using Request = v1::PullBlocksRequest;
  EXPECT_THAT(complaint([](Request& request) { request.set_keys(""); }), HasSubstr("3 keys: none"));
  EXPECT_THAT(complaint([](Request& request) { request.set_keys("abc"); }), HasSubstr("3 keys"));
  EXPECT_THAT(complaint([&](Request& request) { *request.mutable_keys() += request.keys(); }),
              HasSubstr("3 keys"));
  EXPECT_THAT(complaint([](Request& request) { request.set_wait_ms(10'001); }),
              HasSubstr("3 wait_ms: 10001, at most 10000"));
  EXPECT_THAT(complaint([](Request& request) { request.set_fingerprint("x"); }),
              HasSubstr("3 fingerprint"));
  EXPECT_THAT(complaint([](Request& request) { request.set_fingerprint(std::string(32, 'x')); }),
              HasSubstr("9 namespace"));
}

}  // namespace
}  // namespace cairn::node
