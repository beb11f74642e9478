// Method: watchers through the generated classes that rebuild the node's state from the feed and
// compare it with the digests and with Describe.
#include <gmock/gmock.h>

#include <map>
#include <numeric>
#include <set>
#include <thread>

#include "common/identity/segment_digest.h"
#include "tests/cache_node/service/node_fixture.h"

namespace cairn::node {
namespace {

class FeedTest : public NodeFixture {
 protected:
  // One watcher and what it has been told.
  class Watcher {
   public:
    explicit Watcher(v1::CacheNode::Stub* stub)
        : context_(Context()), stream_(stub->WatchBlocks(context_.get())) {}
    ~Watcher() {
      context_->TryCancel();
      if (!finished_) stream_->Finish();
    }

    bool Read(v1::WatchBlocksResponse* message) {
      if (!stream_->Read(message)) return false;
      if (message->has_batch()) Take(message->batch());
      return true;
    }
    // Until a heartbeat whose digests are those of what was told.
    void ReadUntilAgreed(int shards) {
      v1::WatchBlocksResponse message;
      while (Read(&message)) {
        if (!message.has_heartbeat()) continue;
        if (message.heartbeat().shards_size() == shards) break;
      }
      ASSERT_TRUE(message.has_heartbeat());
      for (const v1::ShardDigest& digest : message.heartbeat().shards()) {
        EXPECT_EQ(digest.sequence(), sequences_[digest.shard()]);
        uint64_t sum = 0;
        for (const std::string& key : shards_[digest.shard()]) sum += Share(key);
        EXPECT_EQ(digest.tiers_size() == 0 ? 0 : digest.tiers(0).key_sum(), sum);
        EXPECT_EQ(digest.tiers_size() == 0 ? 0 : digest.tiers(0).blocks(),
                  shards_[digest.shard()].size());
      }
    }
    size_t blocks() const {
      size_t blocks = 0;
      for (const auto& [shard, keys] : shards_) blocks += keys.size();
      return blocks;
    }
    void Resync(const std::vector<uint32_t>& shards) {
      v1::WatchBlocksRequest request;
      request.mutable_resync_shards()->Add(shards.begin(), shards.end());
      stream_->Write(request);
    }
    grpc::Status Finish() {
      finished_ = true;
      return stream_->Finish();
    }

   private:
    static uint64_t Share(const std::string& key) {
      return FeedKeyDigest(*BlockKey::FromBytes(key));
    }
    void Take(const v1::BlockBatch& batch) {
      EXPECT_EQ(batch.sequence(), ++sequences_[batch.shard()]);
      std::set<std::string>& keys = shards_[batch.shard()];
      if (batch.replaces()) keys.clear();
      for (size_t i = 0; i < batch.tier_masks().size(); ++i) {
        const std::string key = batch.keys().substr(16 * i, 16);
        EXPECT_EQ(static_cast<uint8_t>(key[0]) % 64u, batch.shard());
        if (batch.tier_masks()[i] == 0) {
          keys.erase(key);
        } else {
          keys.insert(key);
        }
      }
    }

    std::unique_ptr<grpc::ClientContext> context_;
    std::unique_ptr<grpc::ClientReaderWriter<v1::WatchBlocksRequest, v1::WatchBlocksResponse>>
        stream_;
    bool finished_ = false;
    std::map<uint32_t, uint64_t> sequences_;
    std::map<uint32_t, std::set<std::string>> shards_;
  };

  void StartQuickNode() {
    NodeConfig config = SmallConfig();
    config.heartbeat = absl::Milliseconds(10);
    StartNode(config);
  }
};

TEST_F(FeedTest, HelloComesFirst) {
  Watcher watcher(stub_.get());
  v1::WatchBlocksResponse message;
  ASSERT_TRUE(watcher.Read(&message));
  ASSERT_TRUE(message.has_hello());
  EXPECT_EQ(message.hello().contract_version(), 1u);
  EXPECT_EQ(message.hello().node_id(), "node-1");
  EXPECT_EQ(message.hello().shards(), 64u);
  EXPECT_EQ(message.hello().drain_state(), v1::DRAIN_STATE_SERVING);
}

TEST_F(FeedTest, SnapshotAndChangesAgreeWithTheDigests) {
  StartQuickNode();
  const TestPrompt before = MakePrompt(1, 20);
  Put(before);
  Watcher watcher(stub_.get());
  watcher.ReadUntilAgreed(64);
  EXPECT_EQ(watcher.blocks(), 20u);
  Put(MakePrompt(2, 10));
  v1::ClearScopeRequest clearing;
  clearing.set_fingerprint(fingerprint_);
  clearing.mutable_scope()->set_tenant("public");
  while (watcher.blocks() < 30) watcher.ReadUntilAgreed(64);
  v1::ClearScopeResponse cleared;
  ASSERT_TRUE(stub_->ClearScope(Context().get(), clearing, &cleared).ok());
  while (watcher.blocks() > 0) watcher.ReadUntilAgreed(64);
  EXPECT_EQ(Describe().blocks(), 0u);
}

TEST_F(FeedTest, NamespacesAreRecords) {
  Watcher watcher(stub_.get());
  v1::WatchBlocksResponse message;
  while (watcher.Read(&message) && !message.has_namespace_record()) {
  }
  EXPECT_EQ(message.namespace_record().fingerprint(), fingerprint_);
  EXPECT_EQ(message.namespace_record().name(), "model");
  EXPECT_EQ(message.namespace_record().block_tokens(), 16u);
}

TEST_F(FeedTest, ResyncSendsAShardAnew) {
  StartQuickNode();
  Watcher watcher(stub_.get());
  watcher.ReadUntilAgreed(64);
  watcher.Resync({7});
  v1::WatchBlocksResponse message;
  while (watcher.Read(&message) && !message.has_batch()) {
  }
  EXPECT_EQ(message.batch().shard(), 7u);
  EXPECT_TRUE(message.batch().replaces());
  watcher.ReadUntilAgreed(64);
}

TEST_F(FeedTest, ResyncOfAShardThatIsNotThereIsInvalid) {
  Watcher watcher(stub_.get());
  watcher.Resync({64});
  v1::WatchBlocksResponse message;
  while (watcher.Read(&message)) {
  }
  EXPECT_EQ(watcher.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(FeedTest, WatcherThatDoesNotReadForAWhileKeepsItsStreamAndEndsRight) {
  NodeConfig config = SmallConfig();
  config.feed_queue_records = 64;
  config.heartbeat = absl::Milliseconds(10);
  StartNode(config);
  const std::unique_ptr<v1::CacheNode::Stub> own_channel = NewStub();
  Watcher watcher(own_channel.get());
  watcher.ReadUntilAgreed(64);
  const std::string none = "cairn_node_feed_shards_given_up_total 0\n";
  for (uint32_t seed = 1; node_->metrics().Text().find(none) != std::string::npos; ++seed) {
    ASSERT_LT(seed, 1000u);
    Put(MakePrompt(seed, 100));
    v1::ClearScopeRequest clearing;
    clearing.set_fingerprint(fingerprint_);
    v1::ClearScopeResponse cleared;
    ASSERT_TRUE(stub_->ClearScope(Context().get(), clearing, &cleared).ok());
  }
  Put(MakePrompt(2000, 100));
  const uint64_t blocks = Describe().blocks();
  while (watcher.blocks() != blocks) ASSERT_NO_FATAL_FAILURE(watcher.ReadUntilAgreed(64));
  ASSERT_NO_FATAL_FAILURE(watcher.ReadUntilAgreed(64));
  EXPECT_NE(node_->metrics().Text().find("cairn_node_watchers_cut_total 0\n"), std::string::npos);
}

TEST_F(FeedTest, WatchersAreBounded) {
  std::vector<std::unique_ptr<Watcher>> watchers;
  v1::WatchBlocksResponse message;
  for (uint32_t i = 0; i < FeedHub::kWatchersMax; ++i) {
    watchers.push_back(std::make_unique<Watcher>(stub_.get()));
    ASSERT_TRUE(watchers.back()->Read(&message));
  }
  Watcher refused(stub_.get());
  EXPECT_FALSE(refused.Read(&message));
  EXPECT_EQ(refused.Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(FeedTest, WatcherThatTakesNothingForTooLongLosesItsPlace) {
  NodeConfig config = SmallConfig();
  config.heartbeat = absl::Milliseconds(10);
  config.feed_stall = absl::Milliseconds(50);
  StartNode(config);
  Put(MakePrompt(1, 1000));
  const std::unique_ptr<v1::CacheNode::Stub> own_channel = NewStub();
  Watcher watcher(own_channel.get());
  v1::WatchBlocksResponse message;
  ASSERT_TRUE(watcher.Read(&message));
  // Snapshots over and over fill what gRPC keeps for a stream that nobody reads.
  std::vector<uint32_t> all(64);
  std::iota(all.begin(), all.end(), 0);
  while (node_->metrics().Text().find("cairn_node_watchers 0\n") == std::string::npos) {
    watcher.Resync(all);
  }
  while (watcher.Read(&message)) {
  }
  EXPECT_EQ(watcher.Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(FeedTest, DrainIsSaidAndThenEndsTheFeed) {
  Watcher watcher(stub_.get());
  v1::WatchBlocksResponse message;
  ASSERT_TRUE(watcher.Read(&message));
  std::thread drainer([&] { node_->Drain(); });
  bool said = false;
  while (watcher.Read(&message)) {
    said |=
        message.has_heartbeat() && message.heartbeat().drain_state() == v1::DRAIN_STATE_DRAINING;
  }
  EXPECT_TRUE(said);
  EXPECT_EQ(watcher.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  drainer.join();
}

TEST_F(FeedTest, DrainingNodeRefusesNewWritersAndLeases) {
  NodeConfig config = SmallConfig();
  config.drain_grace = absl::Seconds(30);
  StartNode(config);
  const TestPrompt prompt = MakePrompt(1, 1);
  Put(prompt);
  v1::LookupRequest request = LookupRequestOf(prompt);
  request.mutable_lease()->set_readers(1);
  v1::LookupResponse leased;
  ASSERT_TRUE(stub_->Lookup(Context().get(), request, &leased).ok());
  std::thread drainer([&] { node_->Drain(); });  // Waits for the lease.
  while (Describe().node().drain_state() != v1::DRAIN_STATE_DRAINING) std::this_thread::yield();
  v1::LookupResponse response;
  EXPECT_EQ(stub_->Lookup(Context().get(), request, &response).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  v1::ReserveResponse reserved;
  EXPECT_EQ(
      stub_->Reserve(Context().get(), ReserveRequestOf(MakePrompt(2, 1)), &reserved).error_code(),
      grpc::StatusCode::UNAVAILABLE);
  v1::EndLeaseRequest end;
  end.set_lease(leased.lease());
  end.add_usable_blocks(1);
  v1::EndLeaseResponse ended;
  EXPECT_TRUE(stub_->EndLease(Context().get(), end, &ended).ok());
  drainer.join();
}

}  // namespace
}  // namespace cairn::node
