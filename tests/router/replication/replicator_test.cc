// Method: a transport that keeps its orders until a test ends them; threads that route meanwhile.
#include "router/replication/replicator.h"

#include <gmock/gmock.h>

#include <thread>

#include "tests/router/replication/routed.h"
#include "tests/testing/fake_clock.h"

namespace cairn::router {
namespace {

constexpr uint32_t kShared = 16;

class KeptOrders final : public CopyTransport {
 public:
  void Start(const CopyOrder& order, Done done) override {
    absl::MutexLock lock(&mutex_);
    orders_.push_back({order, std::move(done)});
  }
  size_t size() const {
    absl::MutexLock lock(&mutex_);
    return orders_.size();
  }
  void EndAll() {
    std::vector<std::pair<CopyOrder, Done>> orders;
    {
      absl::MutexLock lock(&mutex_);
      orders.swap(orders_);
    }
    for (const auto& [order, done] : orders) {
      CopyResult result;
      result.blocks_pulled = order.keys.size();
      result.bytes_pulled = order.bytes;
      done(result);
    }
  }

 private:
  mutable absl::Mutex mutex_;
  std::vector<std::pair<CopyOrder, Done>> orders_ ABSL_GUARDED_BY(mutex_);
};

class ReplicatorTest : public ::testing::Test {
 protected:
  ReplicatorTest() { options_.bytes_per_token = 1024; }

  static void Route(Replicator* replicator, uint32_t prompt) {
    const std::vector<RankedReplica> replicas = {NodeWith(1, kShared, 3), NodeWith(2, 0, 0)};
    const std::vector<BlockKey> keys = KeysOf(kShared, prompt, 1);
    replicator->OnRouted({.tenant = "acme",
                          .fingerprint = Fingerprint(),
                          .keys = keys,
                          .block_tokens = kBlockTokens,
                          .replicas = replicas});
  }

  ReplicationOptions options_;
  testing::FakeClock clock_;
  KeptOrders orders_;
};

TEST_F(ReplicatorTest, AnOrderGoesOutOnceAndItsEndIsBooked) {
  Replicator replicator(options_, &clock_, &orders_);
  for (uint32_t i = 0; i < 20; ++i) Route(&replicator, i);
  EXPECT_EQ(orders_.size(), 1u);
  EXPECT_EQ(replicator.outstanding_bytes(), kShared * kBlockTokens * 1024u);
  orders_.EndAll();
  EXPECT_EQ(replicator.outstanding_bytes(), 0u);
  EXPECT_EQ(replicator.counters().blocks_copied, kShared);
}

TEST_F(ReplicatorTest, ThreadsRouteWhileCopiesEnd) {
  Replicator replicator(options_, &clock_, &orders_);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < 200; ++i) Route(&replicator, t * 1000 + i);
    });
  }
  for (int i = 0; i < 50; ++i) {
    orders_.EndAll();
    clock_.Advance(absl::Seconds(2));
  }
  for (std::thread& thread : threads) thread.join();
  orders_.EndAll();
  EXPECT_EQ(replicator.outstanding_bytes(), 0u);
  EXPECT_EQ(replicator.counters().blocks_copied, replicator.counters().orders * kShared);
}

}  // namespace
}  // namespace cairn::router
