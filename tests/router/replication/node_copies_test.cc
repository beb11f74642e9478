// Method: a node over gRPC that answers pulls as a script says; what it was asked for, and what the
// copy then says came.
#include "router/replication/node_copies.h"

#include <gmock/gmock.h>
#include <grpcpp/server_builder.h>

#include <deque>

#include "absl/synchronization/notification.h"
#include "cairn/v1/cache_node.grpc.pb.h"
#include "common/rpc/id_conversion.h"
#include "tests/router/replication/routed.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/seeded_random.h"

namespace cairn::router {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kBlockBytes = 100;

class ScriptedPulls final : public v1::CacheNode::Service {
 public:
  struct Asked {
    std::string tenant;
    std::string keys;
    friend bool operator==(const Asked&, const Asked&) = default;
  };

  ScriptedPulls() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  // The next answer: this outcome for all keys.
  void Say(v1::PullOutcome outcome) { script_.push_back(outcome); }
  const std::vector<Asked>& asked() const { return asked_; }

 private:
  grpc::Status PullBlocks(grpc::ServerContext*, const v1::PullBlocksRequest* request,
                          v1::PullBlocksResponse* response) override {
    asked_.push_back({request->tenant(), request->keys()});
    if (script_.empty()) return {grpc::StatusCode::FAILED_PRECONDITION, "no peers"};
    const v1::PullOutcome outcome = script_.front();
    script_.pop_front();
    for (size_t i = 0; i < request->keys().size() / kKeyBytes; ++i) {
      response->add_outcomes(outcome);
      if (outcome == v1::PULL_OUTCOME_PULLED) {
        response->set_pulled_bytes(response->pulled_bytes() + kBlockBytes);
      }
    }
    response->set_complete(outcome != v1::PULL_OUTCOME_IN_PROGRESS);
    return grpc::Status::OK;
  }

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::deque<v1::PullOutcome> script_;
  std::vector<Asked> asked_;
};

class NodeCopiesTest : public ::testing::Test {
 protected:
  CopyResult Copy(size_t public_blocks) {
    CopyOrder order;
    order.tenant = "acme";
    order.keys = KeysOf(6, 0, 0);
    order.public_blocks = public_blocks;
    order.source_node_id = "node-1";
    order.node_addresses = {node_.address()};
    CopyResult copied;
    absl::Notification over;
    copies_.Start(order, [&](const CopyResult& result) {
      copied = result;
      over.Notify();
    });
    over.WaitForNotification();
    return copied;
  }
  static std::string Keys(size_t first, size_t count) {
    return KeysToProto(absl::MakeConstSpan(KeysOf(6, 0, 0)).subspan(first, count));
  }

  testing::FakeClock clock_;
  testing::SeededRandom random_{1};
  StoppableWait wait_;
  ScriptedPulls node_;
  NodeCopies copies_{ClientOptions(), {nullptr, &clock_, &random_, &wait_}};
};

TEST_F(NodeCopiesTest, IsAskedUntilNothingIsInHand) {
  node_.Say(v1::PULL_OUTCOME_IN_PROGRESS);
  node_.Say(v1::PULL_OUTCOME_PULLED);
  const CopyResult result = Copy(0);
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.blocks_pulled, 6u);
  EXPECT_EQ(result.bytes_pulled, 6 * kBlockBytes);
  EXPECT_EQ(node_.asked().size(), 2u);
}

TEST_F(NodeCopiesTest, WhatCameBetweenTwoCallsIsOfThisCopy) {
  node_.Say(v1::PULL_OUTCOME_IN_PROGRESS);
  node_.Say(v1::PULL_OUTCOME_PRESENT);
  const CopyResult result = Copy(0);
  EXPECT_EQ(result.blocks_pulled, 6u);
  EXPECT_EQ(result.blocks_present, 0u);
  EXPECT_EQ(result.bytes_pulled, 0u) << "which nobody said";
}

TEST_F(NodeCopiesTest, APublicRegionIsAskedForFirstAsWhatItIs) {
  node_.Say(v1::PULL_OUTCOME_PULLED);
  node_.Say(v1::PULL_OUTCOME_PULLED);
  EXPECT_EQ(Copy(2).blocks_pulled, 6u);
  EXPECT_THAT(node_.asked(), ElementsAre(ScriptedPulls::Asked{"public", Keys(0, 2)},
                                         ScriptedPulls::Asked{"acme", Keys(2, 4)}));
}

TEST_F(NodeCopiesTest, WithoutItsPublicRegionNothingElseIsAskedFor) {
  node_.Say(v1::PULL_OUTCOME_MISSING);
  const CopyResult result = Copy(2);
  EXPECT_TRUE(result.status.ok());
  EXPECT_EQ(result.blocks_pulled, 0u);
  EXPECT_EQ(node_.asked().size(), 1u);
}

TEST_F(NodeCopiesTest, ARefusalIsItsStatus) {
  EXPECT_EQ(Copy(0).status.code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace cairn::router
