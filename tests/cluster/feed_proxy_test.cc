// A scripted node behind the proxy and a watcher before it: whatever happens to batches on their
// way shows in their sequences, and what the watcher asks for reaches the node.
#include "tests/cluster/feed_proxy.h"

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>

#include <deque>

#include "absl/time/clock.h"
#include "client/cpp/block_watcher.h"
#include "tests/router/service/scripted_node.h"

namespace cairn::testing {
namespace {

using router::NumberedKeys;
using ::testing::ElementsAre;

constexpr absl::Duration kBound = absl::Seconds(20);
// The scripted node has something to say at once, and every 100 ms.
constexpr absl::Duration kHeld = absl::Milliseconds(300);
constexpr absl::Duration kNextWait = absl::Milliseconds(20);

class FeedProxyTest : public ::testing::Test {
 protected:
  FeedProxyTest() { Watch(); }

  // Begins a new feed.
  void Watch() {
    watcher_ = nullptr;
    stub_ = v1::CacheNode::NewStub(
        grpc::CreateChannel(proxy_.address(), grpc::InsecureChannelCredentials()));
    watcher_ = std::make_unique<BlockWatcher>(stub_.get());
    sequences_.clear();
  }

  // Takes messages until the condition holds, or for `bound`.
  bool Follow(const std::function<bool()>& condition, absl::Duration bound = kBound) {
    const absl::Time deadline = absl::Now() + bound;
    while (!condition() && absl::Now() < deadline) {
      const auto message = watcher_->Next(kNextWait);
      if (!message.ok()) {
        end_ = message.status();
        return condition();
      }
      if (!message->has_value()) continue;
      ++messages_;
      if ((*message)->has_batch()) sequences_.push_back((*message)->batch().sequence());
    }
    return condition();
  }

  bool AwaitBatches(size_t count) {
    return Follow([&] { return sequences_.size() >= count; });
  }

  // The node puts one more block of its only shard: one more batch.
  void Put() { node_.Put(NumberedKeys(++puts_, 1)); }

  // Says one fate after the other, then passes.
  void Judge(std::deque<BatchFate> fates) {
    proxy_.SetJudge([fates](const v1::BlockBatch&) mutable {
      if (fates.empty()) return BatchFate::kPass;
      const BatchFate fate = fates.front();
      fates.pop_front();
      return fate;
    });
  }

  router::ScriptedNode node_{{.shards = 1}};
  FeedProxy proxy_{node_.target()};
  std::unique_ptr<v1::CacheNode::Stub> stub_;
  std::unique_ptr<BlockWatcher> watcher_;
  std::vector<uint64_t> sequences_;
  size_t messages_ = 0;
  absl::Status end_;
  uint32_t puts_ = 0;
};

TEST_F(FeedProxyTest, PassesOnWhatItIsNotToldToBend) {
  ASSERT_TRUE(AwaitBatches(1));
  for (int i = 0; i < 3; ++i) Put();
  EXPECT_TRUE(AwaitBatches(4));
  EXPECT_THAT(sequences_, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(proxy_.counts().batches, 4u);
}

TEST_F(FeedProxyTest, PassesOnWhatTheWatcherAsks) {
  ASSERT_TRUE(AwaitBatches(1));
  watcher_->Resync({0});
  EXPECT_TRUE(AwaitBatches(2));
  EXPECT_EQ(node_.resyncs(), 1u);
  EXPECT_EQ(proxy_.counts().shards_asked_again, 1u);
}

TEST_F(FeedProxyTest, ADroppedBatchDoesNotCome) {
  ASSERT_TRUE(AwaitBatches(1));
  Judge({BatchFate::kDrop});
  Put();
  Put();
  EXPECT_TRUE(AwaitBatches(2));
  EXPECT_THAT(sequences_, ElementsAre(1, 3));
  EXPECT_EQ(proxy_.counts().dropped, 1u);
}

TEST_F(FeedProxyTest, ADoubledBatchComesTwice) {
  ASSERT_TRUE(AwaitBatches(1));
  Judge({BatchFate::kTwice});
  Put();
  EXPECT_TRUE(AwaitBatches(3));
  EXPECT_THAT(sequences_, ElementsAre(1, 2, 2));
  EXPECT_EQ(proxy_.counts().doubled, 1u);
}

TEST_F(FeedProxyTest, ASwappedBatchComesAfterTheNext) {
  ASSERT_TRUE(AwaitBatches(1));
  Judge({BatchFate::kSwap});
  Put();
  Put();
  EXPECT_TRUE(AwaitBatches(3));
  EXPECT_THAT(sequences_, ElementsAre(1, 3, 2));
  EXPECT_EQ(proxy_.counts().swapped, 1u);
}

TEST_F(FeedProxyTest, ACutFeedEndsAndAnotherBegins) {
  ASSERT_TRUE(AwaitBatches(1));
  proxy_.Cut();
  EXPECT_TRUE(Follow([&] { return !end_.ok(); }));
  Watch();
  EXPECT_TRUE(AwaitBatches(1));
  EXPECT_EQ(proxy_.counts().feeds, 2u);
}

TEST_F(FeedProxyTest, AHeldFeedSaysNothingUntilItMay) {
  proxy_.Hold(true);
  Watch();
  EXPECT_FALSE(Follow([&] { return messages_ > 0; }, kHeld));
  proxy_.Hold(false);
  EXPECT_TRUE(AwaitBatches(1));
}

TEST_F(FeedProxyTest, AFeedEndsWithItsNode) {
  ASSERT_TRUE(AwaitBatches(1));
  node_.Stop();
  EXPECT_TRUE(Follow([&] { return !end_.ok(); }));
}

}  // namespace
}  // namespace cairn::testing
