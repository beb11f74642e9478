// An hour of churn in seconds: thousands of tiny blocks put, evicted, deleted and cleared, while
// watchers of every kind follow; at the end their mirrors are compared with the node's own digests.
#include <grpcpp/create_channel.h>

#include <iostream>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/block_watcher.h"
#include "common/rpc/channel_options.h"
#include "tests/cluster/checked_payload.h"
#include "tests/cluster/mirror_reader.h"
#include "tests/cluster/node_fixture.h"
#include "tests/cluster/numbered_prompt.h"

namespace cairn::testing {
namespace {

constexpr uint32_t kBlocks = 64;  // Of a prompt.
// A pool of 1 MiB holds 16,384 blocks of 64 bytes, less than half of all.
constexpr uint32_t kPrompts = 600;
constexpr uint32_t kScopes = 5;
constexpr uint64_t kRssGrowthMax = uint64_t{24} << 20;

std::string SaltOf(uint32_t number) { return absl::StrCat("scope", number % kScopes); }

class FeedTest : public NodeTest {
 protected:
  void Start(std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--host-memory=1MiB", "--memory-limit=1GiB"});
    ASSERT_NO_FATAL_FAILURE(StartNode(std::move(flags)));
    client_ = NewClient();
    name_space_ = std::make_unique<NamespaceHandle>(Register(**client_, TinyBlocks()));
  }

  // Puts `puts` random prompts; deletes some and clears a scope now and then.
  void Churn(uint64_t seed, int puts) {
    const auto client = NewClient();
    std::mt19937_64 random(seed);
    for (int i = 0; i < puts; ++i) {
      const auto number = static_cast<uint32_t>(random() % kPrompts);
      const NumberedPrompt prompt(**client, *name_space_, number, kBlocks, SaltOf(number));
      const uint64_t choice = random() % 100;
      absl::Status status;
      if (choice < 90) {
        status = PutPrompt(**client, *name_space_, prompt.prompt(), true).status();
        // Its scope was cleared, or its blocks deleted, under its token.
        if (status.code() == absl::StatusCode::kAborted) status = absl::OkStatus();
      } else if (choice < 99) {
        status = (*client)->Delete(name_space_->fingerprint(), prompt.keys()).status();
      } else {
        status =
            (*client)->ClearScope(name_space_->fingerprint(), ScopeOf(SaltOf(number))).status();
      }
      ASSERT_TRUE(status.ok()) << "seed " << seed << ", step " << i << ": " << status;
    }
  }

  void ExpectAgreement(MirrorReader& mirror, const std::string& which) {
    EXPECT_TRUE(mirror.AwaitAgreement(**client_, kSoon)) << which << ": " << mirror.status();
    EXPECT_TRUE(mirror.AwaitExact(kSoon)) << which << ": " << mirror.status();
    EXPECT_EQ(mirror.gaps_seen(), 0u) << which;
    EXPECT_EQ(mirror.digest_mismatches_seen(), 0u) << which;
    std::cout << which << ": " << mirror.messages() << " messages, " << mirror.block_count()
              << " blocks at the end\n";
  }

  std::unique_ptr<TestClient> client_;
  std::unique_ptr<NamespaceHandle> name_space_;
};

TEST_F(FeedTest, MirrorsAgreeWithTheNodesDigestsAfterChurn) {
  ASSERT_NO_FATAL_FAILURE(Start({}));
  MirrorReader from_start(**client_);
  MirrorReader resyncing(**client_);
  std::vector<std::thread> churners;
  for (uint64_t seed = 0; seed < 2; ++seed) {
    churners.emplace_back([this, seed] { Churn(seed, 600); });
  }
  Churn(10, 200);
  MirrorReader from_middle(**client_);
  for (uint32_t shard = 0; shard < 64; ++shard) {
    resyncing.Resync({shard});
    Churn(20 + shard, 5);
  }
  for (std::thread& thread : churners) thread.join();
  EXPECT_GT(Describe().blocks(), 0u);
  ExpectAgreement(from_start, "from the start");
  ExpectAgreement(resyncing, "that resyncs");
  ExpectAgreement(from_middle, "from the middle");
}

// A connection that takes no more than 64 KiB of what is not read: otherwise gRPC itself would read
// megabytes ahead.
std::unique_ptr<v1::CacheNode::Stub> ConnectWithSmallWindow(const std::string& address) {
  grpc::ChannelArguments arguments = MakeChannelArguments();
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  return v1::CacheNode::NewStub(
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
}

// Follows a feed until every shard is in, then reads no more.
std::unique_ptr<BlockWatcher> WatchAndStop(v1::CacheNode::Stub* stub) {
  auto watcher = std::make_unique<BlockWatcher>(stub);
  BlockMirror mirror(MirrorOptions{});
  const absl::Time deadline = absl::Now() + kSoon;
  while (!mirror.Exact() && absl::Now() < deadline) {
    const auto message = watcher->Next(absl::Milliseconds(100));
    EXPECT_TRUE(message.ok()) << message.status();
    if (!message.ok()) break;
    if (*message) {
      EXPECT_TRUE(mirror.Apply(**message, absl::Now()).ok());
    }
  }
  EXPECT_TRUE(mirror.Exact());
  return watcher;
}

// Reads what still comes; how the feed ended.
absl::Status EndOf(BlockWatcher& watcher) {
  const absl::Time deadline = absl::Now() + kSoon;
  while (absl::Now() < deadline) {
    const auto message = watcher.Next(absl::Seconds(1));
    if (!message.ok()) return message.status();
  }
  return absl::OkStatus();
}

TEST_F(FeedTest, AWatcherThatStopsReadingIsCutAndCostsNothing) {
  ASSERT_NO_FATAL_FAILURE(Start({"--feed-queue-records=8192", "--removed-remembered=1024"}));
  MirrorReader other(**client_);
  Churn(1, 400);  // To the state in which memory is to stay.
  const auto stub = ConnectWithSmallWindow(node().address());
  const auto stuck = WatchAndStop(stub.get());
  ASSERT_FALSE(HasFailure());

  const uint64_t rss_before = node().process().RssBytes();
  Churn(2, 1000);
  const uint64_t rss_after = node().process().RssBytes();
  std::cout << "resident before " << rss_before << ", after " << rss_after << " bytes\n";
  EXPECT_LT(rss_after, rss_before + kRssGrowthMax);

  EXPECT_EQ(EndOf(*stuck).code(), absl::StatusCode::kResourceExhausted);
  ExpectAgreement(other, "the other watcher");
  MirrorReader again(**client_);
  ExpectAgreement(again, "one that begins again");
}

TEST_F(FeedTest, AWatcherWhoseMessagesDoNotLeaveIsCutThoughItsQueueHasRoom) {
  ASSERT_NO_FATAL_FAILURE(Start({"--feed-queue-records=65536", "--feed-stall-ms=300"}));
  MirrorReader other(**client_);
  const auto stub = ConnectWithSmallWindow(node().address());
  const auto stuck = WatchAndStop(stub.get());
  ASSERT_FALSE(HasFailure());
  // Longer than the node puts up with it.
  const absl::Time end = absl::Now() + absl::Milliseconds(1500);
  for (uint64_t seed = 1; absl::Now() < end; ++seed) Churn(seed, 100);
  EXPECT_FALSE(EndOf(*stuck).ok());
  ExpectAgreement(other, "the other watcher");
}

}  // namespace
}  // namespace cairn::testing
