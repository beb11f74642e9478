// Clients beside a node in this process: what they read in place and write through staging memory
// is compared byte by byte, and the node's memory is taken away under them in every way there is.
#include <cstring>

#include "client/cpp/local/local_link.h"
#include "common/identity/segment_digest.h"
#include "tests/cache_node/local/local_node_fixture.h"

namespace cairn::node {
namespace {

using testing::CheckedRead;
using testing::GetAndCompare;
using testing::NumberedPrompt;
using testing::PayloadOf;
using testing::TestClient;

constexpr size_t kBlocks = 4;

class LocalClientTest : public LocalNodeTest {
 protected:
  void SetUp() override {
    StartNode();
    if (HasFatalFailure()) return;
    prompt_ = Prompt(1, kBlocks);
    Put(*prompt_);
    client_ = NewClient();
  }

  InPlaceBlocks ReadInPlace(const NumberedPrompt& prompt) {
    absl::StatusOr<InPlaceBlocks> blocks = (*client_)->ReadInPlace(*name_space_, prompt.keys());
    EXPECT_TRUE(blocks.ok()) << blocks.status();
    return *std::move(blocks);
  }
  bool IsWhole(const InPlaceBlocks& blocks, const NumberedPrompt& prompt, size_t block) {
    const PayloadOf payload(*name_space_, prompt.keys());
    const PayloadMap& map = name_space_->payload_map();
    for (size_t i = 0; i < map.segment_count(); ++i) {
      const absl::Span<const uint8_t> expected = payload(block, map.SegmentAt(i));
      const absl::Span<const uint8_t> read = blocks.segment(block, map.SegmentAt(i));
      if (read != expected) return false;
    }
    return true;
  }
  SegmentSelection All() { return *SegmentSelection::Make(name_space_->payload_map(), {}); }

  std::unique_ptr<NumberedPrompt> prompt_;
  std::unique_ptr<TestClient> client_;
};

TEST_F(LocalClientTest, BytesReadInPlaceAreThoseThatWereWritten) {
  InPlaceBlocks blocks = ReadInPlace(*prompt_);
  ASSERT_EQ(blocks.there_prefix(), kBlocks);
  for (size_t i = 0; i < kBlocks; ++i) {
    EXPECT_TRUE(IsWhole(blocks, *prompt_, i));
    EXPECT_TRUE(blocks.Verify(i, All()));
  }
  EXPECT_EQ(Metric("cairn_local_shares"), 1);
  EXPECT_EQ(node_->store().Status().leases, 1u);
  blocks.End(kBlocks);
  EXPECT_TRUE(AwaitNoPins());
  EXPECT_TRUE(blocks.bytes(0).empty()) << "its share is over";
  const LocalStats stats = (*client_)->local_stats();
  EXPECT_TRUE(stats.connected);
  EXPECT_EQ(stats.blocks_in_place, kBlocks);
  EXPECT_EQ(stats.fallbacks, 0u);
}

TEST_F(LocalClientTest, BlocksThatAreNotThereEndThePrefix) {
  const auto longer = Prompt(1, kBlocks + 2);
  const InPlaceBlocks blocks = ReadInPlace(*longer);
  EXPECT_EQ(blocks.there_prefix(), kBlocks);
  EXPECT_FALSE(blocks.there(kBlocks));
  EXPECT_TRUE(blocks.bytes(kBlocks).empty());
  EXPECT_EQ(blocks.state(kBlocks), v1::BLOCK_STATE_NEVER_SEEN);
  EXPECT_FALSE(blocks.Unchanged(kBlocks));
}

TEST_F(LocalClientTest, OfALeaseTheShareThatIsReadInPlaceDoesNotExpire) {
  auto found = (*client_)->Lookup(*name_space_, prompt_->span(),
                                  {.lease_readers = 1, .lease_ttl = absl::Milliseconds(100)});
  ASSERT_TRUE(found.ok() && found->lease.has_value());
  auto blocks = (*client_)->ReadInPlace(*name_space_, prompt_->keys(), &*found->lease);
  ASSERT_TRUE(blocks.ok()) << blocks.status();
  EXPECT_EQ(blocks->there_prefix(), kBlocks);
  // Others' shares run out meanwhile.
  auto other = (*client_)->Lookup(*name_space_, prompt_->span(),
                                  {.lease_readers = 1, .lease_ttl = absl::Milliseconds(100)});
  ASSERT_TRUE(other.ok() && other->lease.has_value());
  other->lease->Release();
  EXPECT_TRUE(Becomes("cairn_node_expired_shares_total", 1));
  EXPECT_EQ(node_->store().Status().leases, 1u);
  EXPECT_TRUE(blocks->Verify(0, All()));
  const uint32_t usable = kBlocks;
  EXPECT_TRUE(*found->lease->End({&usable, 1}));
  EXPECT_TRUE(AwaitNoPins());
}

TEST_F(LocalClientTest, AGetCopiesOutOfTheNodesMemoryAndNothingIsSent) {
  const CheckedRead read = GetAndCompare(**client_, *name_space_, prompt_->keys());
  EXPECT_TRUE(read.result.AllGood()) << read.result.status;
  EXPECT_EQ(read.wrong, 0u);
  EXPECT_EQ((*client_)->local_stats().blocks_copied, kBlocks);
  EXPECT_EQ(Metric("cairn_node_get_bytes_total"), 0);
  EXPECT_TRUE(AwaitNoPins());
}

TEST_F(LocalClientTest, AGetOfALeaseLeavesItsShareAsItWas) {
  auto found = (*client_)->Lookup(*name_space_, prompt_->span(), {.lease_readers = 1});
  ASSERT_TRUE(found.ok() && found->lease.has_value());
  const CheckedRead read =
      GetAndCompare(**client_, *name_space_, prompt_->keys(), {.lease = found->lease->id()});
  EXPECT_TRUE(read.result.AllGood()) << read.result.status;
  EXPECT_EQ((*client_)->local_stats().blocks_copied, kBlocks);
  EXPECT_EQ(Metric("cairn_local_shares"), 0);
  const uint32_t usable = kBlocks;
  EXPECT_TRUE(*found->lease->End({&usable, 1}));
  EXPECT_TRUE(AwaitNoPins());
}

TEST_F(LocalClientTest, AGetOfWhatIsNotThereSaysWhyAsOverTheNetwork) {
  const auto missing = Prompt(77, 1);
  std::vector<BlockKey> keys = prompt_->keys();
  keys.insert(keys.begin() + 1, missing->keys()[0]);
  const CheckedRead read = GetAndCompare(**client_, *name_space_, keys);
  EXPECT_TRUE(read.result.status.ok());
  EXPECT_EQ(read.wrong, 0u);
  EXPECT_EQ(read.result.usable_prefix, 1u);
  EXPECT_EQ(read.result.blocks[1].state, v1::BLOCK_STATE_NEVER_SEEN);
  EXPECT_TRUE(read.result.blocks[4].good());
  EXPECT_EQ((*client_)->local_stats().blocks_copied, kBlocks);
}

TEST_F(LocalClientTest, APutGoesThroughStagingMemory) {
  const auto written = Prompt(2, kBlocks);
  const auto put = testing::PutPrompt(**client_, *name_space_, written->prompt());
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_EQ(put->blocks_written, kBlocks);
  EXPECT_EQ((*client_)->local_stats().bytes_staged, kBlocks * name_space_->block_bytes());
  EXPECT_EQ(Metric("cairn_local_landed_bytes_total"), kBlocks * name_space_->block_bytes());
  // Another client reads it over the network.
  const CheckedRead read = GetAndCompare(**network_, *name_space_, written->keys());
  EXPECT_TRUE(read.result.AllGood()) << read.result.status;
  EXPECT_EQ(read.wrong, 0u);
  client_ = nullptr;
  EXPECT_TRUE(Becomes("cairn_local_staging_bytes", 0));
}

TEST_F(LocalClientTest, BlocksComputedIntoStagingMemoryAreCopiedOnceAndCommitWithTheNodesDigests) {
  const auto written = Prompt(2, kBlocks);
  auto session = (*client_)->Reserve(*name_space_, written->prompt(), 0, kBlocks);
  ASSERT_TRUE(session.ok() && session->token().has_value());
  auto staged = session->Stage(session->reserved());
  ASSERT_TRUE(staged.ok()) << staged.status();
  const PayloadOf payload(*name_space_, written->keys());
  const PayloadMap& map = name_space_->payload_map();
  for (size_t block = 0; block < kBlocks; ++block) {
    for (size_t i = 0; i < map.segment_count(); ++i) {
      const absl::Span<const uint8_t> from = payload(block, map.SegmentAt(i));
      std::memcpy(staged->bytes(block).data() + map.SegmentOffset(i), from.data(), from.size());
    }
  }
  const auto result = session->WriteStaged(*std::move(staged));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->segments_written, kBlocks * map.segment_count());
  const auto commit = session->Commit();
  ASSERT_TRUE(commit.ok()) << commit.status();
  EXPECT_TRUE(commit->complete);
  const CheckedRead read = GetAndCompare(**network_, *name_space_, written->keys());
  EXPECT_TRUE(read.result.AllGood()) << read.result.status;
  EXPECT_EQ(read.wrong, 0u);
}

TEST_F(LocalClientTest, WhatStoodInStagingMemoryForTooLongIsNotWrittenAsSomethingElse) {
  const auto written = Prompt(2, 1);
  auto session = (*client_)->Reserve(*name_space_, written->prompt(), 0, 1);
  ASSERT_TRUE(session.ok() && session->token().has_value());
  auto staged = session->Stage(session->reserved());
  ASSERT_TRUE(staged.ok()) << staged.status();
  staged->bytes(0)[0] = 7;
  EXPECT_TRUE(Becomes("cairn_local_staging_bytes", 0));
  EXPECT_EQ(staged->bytes(0)[0], 0) << "its pages are gone";
  EXPECT_EQ(session->WriteStaged(*std::move(staged)).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(session->Commit()->complete);
}

TEST_F(LocalClientTest, StagingMemoryThatIsNotUsedGoesAndComesBackWithTheNextPut) {
  ASSERT_EQ(testing::PutPrompt(**client_, *name_space_, Prompt(2, 1)->prompt())->blocks_written,
            1u);
  EXPECT_GT(Metric("cairn_local_staging_bytes"), 0);
  EXPECT_TRUE(Becomes("cairn_local_staging_bytes", 0));
  EXPECT_EQ(Metric("cairn_local_connections"), 1);
  ASSERT_EQ(testing::PutPrompt(**client_, *name_space_, Prompt(3, 1)->prompt())->blocks_written,
            1u);
  EXPECT_EQ((*client_)->local_stats().bytes_staged, 2 * name_space_->block_bytes());
  EXPECT_EQ((*client_)->local_stats().fallbacks, 0u);
}

TEST_F(LocalClientTest, DeletedUnderItsReaderABlockIsAMissAndItsBytesAreStillThere) {
  const InPlaceBlocks blocks = ReadInPlace(*prompt_);
  ASSERT_TRUE(blocks.Unchanged(3));
  ASSERT_TRUE((*network_)->Delete(name_space_->fingerprint(), {prompt_->keys()[3]}).ok());
  EXPECT_FALSE(blocks.Unchanged(3));
  EXPECT_FALSE(blocks.Verify(3, All()));
  EXPECT_EQ((*client_)->local_stats().changed_blocks, 2u);
  EXPECT_EQ(blocks.bytes(3).size(), name_space_->block_bytes()) << "and reading them is no fault";
}

TEST_F(LocalClientTest, ARetiredNamespaceIsAMissForWhoReadsItInPlace) {
  const InPlaceBlocks blocks = ReadInPlace(*prompt_);
  ASSERT_TRUE((*network_)->RetireNamespace(name_space_->fingerprint()).ok());
  for (size_t i = 0; i < kBlocks; ++i) EXPECT_FALSE(blocks.Unchanged(i));
  EXPECT_TRUE(AwaitNoPins());
}

TEST_F(LocalClientTest, AClientThatGoesLeavesNoPinBehind) {
  {
    const InPlaceBlocks blocks = ReadInPlace(*prompt_);
    EXPECT_EQ(node_->store().Status().leases, 1u);
  }
  EXPECT_TRUE(AwaitNoPins());
  const InPlaceBlocks blocks = ReadInPlace(*prompt_);
  EXPECT_GT(node_->store().Status().leases, 0u);
}

TEST_F(LocalClientTest, ANodeThatStartsAnewIsAMissAndThenReadAgain) {
  const InPlaceBlocks blocks = ReadInPlace(*prompt_);
  const std::string address = node_->addresses()[0];
  NodeConfig config = SmallConfig();
  config.listen = {address};
  node_ = nullptr;
  // What is mapped stays, and is what it was.
  EXPECT_TRUE(IsWhole(blocks, *prompt_, 0));
  const CheckedRead gone = GetAndCompare(**client_, *name_space_, {});
  EXPECT_TRUE(gone.result.blocks.empty());
  StartNode(config);
  Put(*prompt_);
  const CheckedRead read = GetAndCompare(**client_, *name_space_, prompt_->keys());
  EXPECT_TRUE(read.result.AllGood()) << read.result.status;
  EXPECT_EQ(read.wrong, 0u);
  EXPECT_GT((*client_)->local_stats().fallbacks, 0u) << "its old memory is looked at still";
}

TEST_F(LocalClientTest, WithoutASocketEverythingGoesOverTheNetwork) {
  NodeConfig config = SmallConfig();
  config.local.socket = "";
  StartNode(config);
  Put(*prompt_);
  client_ = NewClient();
  const CheckedRead read = GetAndCompare(**client_, *name_space_, prompt_->keys());
  EXPECT_TRUE(read.result.AllGood()) << read.result.status;
  const auto put = testing::PutPrompt(**client_, *name_space_, Prompt(5, 2)->prompt());
  EXPECT_EQ(put->blocks_written, 2u);
  EXPECT_EQ((*client_)->ReadInPlace(*name_space_, prompt_->keys()).status().code(),
            absl::StatusCode::kUnavailable);
  const LocalStats stats = (*client_)->local_stats();
  EXPECT_EQ(stats.connects, 0u);
  EXPECT_EQ(stats.fallbacks, 2u);
  EXPECT_GT(Metric("cairn_node_get_bytes_total"), 0);
}

TEST_F(LocalClientTest, WithoutStagingMemoryAPutGoesOverTheNetwork) {
  NodeConfig config = SmallConfig();
  config.local.staging_memory = ByteSize::KiB(4);
  StartNode(config);
  client_ = NewClient();
  const auto put = testing::PutPrompt(**client_, *name_space_, Prompt(5, 2)->prompt());
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_EQ(put->blocks_written, 2u);
  EXPECT_EQ((*client_)->local_stats().bytes_staged, 0u);
  EXPECT_EQ((*client_)->local_stats().fallbacks, 1u);
}

// Memory of one slot size is wanted for another.
class RecallTest : public LocalClientTest {
 protected:
  void SetUp() override {}

  void Start(absl::Duration return_within) {
    NodeConfig config = SmallConfig();
    config.eviction_policy = "lru";
    config.local.return_within = return_within;
    StartNode(config);
    prompt_ = Prompt(1, kBlocks);
    Put(*prompt_);
    client_ = NewClient();
    Layout layout = testing::SmallBlocks();
    layout.block_tokens /= 2;
    others_ = std::make_unique<NamespaceHandle>(testing::Register(**network_, layout));
  }
  // As many blocks as the pool holds, in prompts that may leave for each other.
  void WantThePool() {
    const uint64_t blocks = ByteSize::MiB(16).bytes() / others_->block_bytes();
    for (uint32_t i = 0; i < blocks / 32; ++i) {
      const NumberedPrompt prompt(**network_, *others_, ++wanted_, 32);
      (void)testing::PutPrompt(**network_, *others_, prompt.prompt());
    }
  }

  std::unique_ptr<NamespaceHandle> others_;
  uint32_t wanted_ = 100;
};

TEST_F(RecallTest, AClientThatGoesOnGivesMemoryBackAtItsNextCall) {
  Start(absl::Minutes(10));
  EXPECT_TRUE(GetAndCompare(**client_, *name_space_, prompt_->keys()).result.AllGood());
  EXPECT_EQ(Metric("cairn_local_lent_segments"), 1);
  WantThePool();
  EXPECT_TRUE(Becomes("cairn_local_recalled_bytes", 1 << 20));
  const CheckedRead read = GetAndCompare(**client_, *name_space_, prompt_->keys());
  EXPECT_EQ(read.result.usable_prefix, 0u) << "it made room";
  EXPECT_EQ(read.wrong, 0u);
  EXPECT_TRUE(Becomes("cairn_local_recalled_bytes", 0));
  EXPECT_EQ(Metric("cairn_local_unreturned_bytes"), 0);
  EXPECT_EQ(Metric("cairn_local_connections"), 1);
  WantThePool();
  EXPECT_EQ(node_->store().Status().host_bytes, ByteSize::MiB(16).bytes());
}

TEST_F(RecallTest, AViewKeepsItsMemoryUntilItIsLetGo) {
  Start(absl::Minutes(10));
  auto blocks = std::make_unique<InPlaceBlocks>(ReadInPlace(*prompt_));
  // Its lease is revoked, so that the memory can be wanted.
  ASSERT_TRUE((*network_)->ClearScope(name_space_->fingerprint(), testing::ScopeOf("")).ok());
  WantThePool();
  EXPECT_TRUE(Becomes("cairn_local_recalled_bytes", 1 << 20));
  EXPECT_FALSE(blocks->Unchanged(0));
  EXPECT_TRUE(IsWhole(*blocks, *prompt_, 0)) << "mapped still, and nobody's";
  GetAndCompare(**client_, *name_space_, prompt_->keys());
  EXPECT_EQ(Metric("cairn_local_recalled_bytes"), 1 << 20) << "not while it is looked at";
  blocks = nullptr;
  GetAndCompare(**client_, *name_space_, prompt_->keys());
  EXPECT_TRUE(Becomes("cairn_local_recalled_bytes", 0));
}

TEST_F(RecallTest, AnIdleClientIsCutItsMemoryCountsAsUnreturnedAndComesBackWithItsNextHello) {
  Start(absl::Milliseconds(50));
  EXPECT_TRUE(GetAndCompare(**client_, *name_space_, prompt_->keys()).result.AllGood());
  WantThePool();
  EXPECT_TRUE(Becomes("cairn_local_unreturned_bytes", 1 << 20));
  EXPECT_EQ(Metric("cairn_local_cuts_total{reason=\"not_returning\"}"), 1);
  EXPECT_EQ(Metric("cairn_local_connections"), 0);
  WantThePool();
  EXPECT_EQ(node_->store().Status().host_bytes, ByteSize::MiB(15).bytes());
  const CheckedRead read = GetAndCompare(**client_, *name_space_, prompt_->keys());
  EXPECT_EQ(read.wrong, 0u);
  EXPECT_EQ((*client_)->local_stats().connects, 2u);
  EXPECT_TRUE(Becomes("cairn_local_unreturned_bytes", 0));
  WantThePool();
  EXPECT_EQ(node_->store().Status().host_bytes, ByteSize::MiB(16).bytes());
}

TEST_F(RecallTest, ClientsOfATenantThatGiveNothingBackDoNotTakeThePool) {
  Start(absl::Milliseconds(50));
  std::vector<std::unique_ptr<TestClient>> idle;
  for (uint32_t round = 0; round < 20; ++round) {
    const auto prompt = Prompt(1000 + round, kBlocks);
    Put(*prompt);
    idle.push_back(NewClient());
    const CheckedRead read = GetAndCompare(**idle.back(), *name_space_, prompt->keys());
    EXPECT_TRUE(read.result.AllGood()) << round << ": over the network, where it is lent no more";
    EXPECT_EQ(read.wrong, 0u);
    WantThePool();
    EXPECT_TRUE(Becomes("cairn_local_recalled_bytes", 0));
  }
  // A quarter, and one more segment that was lent before that was reached.
  EXPECT_GE(node_->store().Status().host_bytes, ByteSize::MiB(11).bytes());
  idle.clear();  // Who goes says that it unmapped; those that were cut cannot any more.
  EXPECT_GT(Metric("cairn_local_unreturned_bytes"), 0);
}

TEST_F(LocalClientTest, ManyReadersAtOnceGetTheirBytes) {
  std::vector<std::thread> readers;
  std::atomic<uint64_t> wrong{0};
  std::atomic<uint64_t> good{0};
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        const CheckedRead read = GetAndCompare(**client_, *name_space_, prompt_->keys());
        wrong += read.wrong;
        if (read.result.AllGood()) ++good;
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(good, 80u);
  EXPECT_TRUE(AwaitNoPins());
}

}  // namespace
}  // namespace cairn::node
