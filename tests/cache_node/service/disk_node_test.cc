// Method: a whole node over a disk of memory that fails and hangs by script, with a pool that holds
// 64 blocks, so that others push a prompt out of it. Conditions are awaited by asking the node.
#include <gmock/gmock.h>

#include <memory>
#include <optional>
#include <thread>

#include "absl/synchronization/notification.h"
#include "common/rpc/status_mapping.h"
#include "tests/cache_node/service/node_fixture.h"
#include "tests/testing/memory_disk_tier.h"

namespace cairn::node {
namespace {

using testing::DiskCall;
using ::testing::HasSubstr;
using testing::MemoryDiskTier;
using ::testing::Not;

constexpr size_t kPoolBlocks = 64;
constexpr size_t kPromptBlocks = 8;

class DiskNodeTest : public NodeFixture {
 protected:
  DiskNodeTest() { StartNode(DiskConfigOfNode(), &disk_); }
  // The node goes before its disk.
  ~DiskNodeTest() override {
    LetGo();
    stub_ = nullptr;
    node_ = nullptr;
  }

  static NodeConfig DiskConfigOfNode() {
    NodeConfig config = SmallConfig();
    config.host_memory = ByteSize::MiB(1);
    config.disk.dir = "memory";
    config.disk.bytes = ByteSize::MiB(256);
    config.disk.index_memory = ByteSize::MiB(4);
    config.disk.spill_file_age = absl::Milliseconds(5);
    config.heartbeat = absl::Milliseconds(20);
    return config;
  }

  // The process dies and starts again over the same disk.
  void Restart(const NodeConfig& config = DiskConfigOfNode()) {
    stub_ = nullptr;
    node_ = nullptr;
    disk_.Kill();
    StartNode(config, &disk_);
  }

  // Calls of this kind, or all, wait until LetGo.
  void Hold(std::optional<DiskCall> call) {
    held_ = std::make_shared<absl::Notification>();
    disk_.SetHook([held = held_, call](DiskCall one) {
      if (!call.has_value() || *call == one) held->WaitForNotification();
    });
  }
  void LetGo() {
    if (held_ != nullptr && !held_->HasBeenNotified()) held_->Notify();
  }

  v1::DiskReport Disk() { return Describe().node().disk(); }
  template <typename Condition>
  void AwaitDisk(const Condition& condition) {
    while (!condition(Disk())) std::this_thread::yield();
  }
  void AwaitSpilled(uint64_t blocks) {
    AwaitDisk([&](const v1::DiskReport& disk) { return disk.blocks() >= blocks; });
  }

  // Blocks of other prompts that fill the pool twice.
  void PushOut() {
    for (size_t i = 0; i < 2 * kPoolBlocks / kPromptBlocks; ++i) {
      const uint64_t before = Disk().blocks();
      Put(MakePrompt(++filler_seed_, kPromptBlocks));
      AwaitSpilled(before + kPromptBlocks);
    }
  }
  // On disk, and not in memory.
  TestPrompt PutOnDisk(uint32_t seed) {
    const TestPrompt prompt = MakePrompt(seed, kPromptBlocks);
    const uint64_t before = Disk().blocks();
    Put(prompt);
    AwaitSpilled(before + kPromptBlocks);
    PushOut();
    return prompt;
  }

  v1::LookupResponse Lookup(const v1::LookupRequest& request) {
    v1::LookupResponse response;
    const grpc::Status status = stub_->Lookup(Context().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  // Of all blocks; UNSPECIFIED when they differ.
  v1::BlockState StateOf(const TestPrompt& prompt) {
    return StateIn(Lookup(LookupRequestOf(prompt)));
  }
  static v1::BlockState StateIn(const v1::LookupResponse& response) {
    const auto& runs = response.results(0).runs();
    return runs.size() == 1 ? runs[0].state() : v1::BLOCK_STATE_UNSPECIFIED;
  }
  // Its bytes, read under a lease that waits for loads.
  void ExpectReadable(const TestPrompt& prompt) {
    v1::LookupRequest request = LookupRequestOf(prompt);
    request.mutable_lease()->set_readers(1);
    request.set_wait_ms(10'000);
    const v1::LookupResponse leased = Lookup(request);
    EXPECT_EQ(leased.results(0).blocks_leased(), prompt.keys.size());
    leased_from_ = StateIn(leased);
    v1::GetRequest get = GetRequestOf(prompt);
    get.set_lease(leased.lease());
    std::vector<v1::GetResponse> frames;
    EXPECT_TRUE(Get(get, &frames).ok());
    ExpectBytes(prompt, frames);
    v1::EndLeaseRequest end;
    end.set_lease(leased.lease());
    end.add_usable_blocks(static_cast<uint32_t>(prompt.keys.size()));
    v1::EndLeaseResponse ended;
    EXPECT_TRUE(stub_->EndLease(Context().get(), end, &ended).ok());
  }
  void ExpectBytes(const TestPrompt& prompt, const std::vector<v1::GetResponse>& frames) {
    const auto segments = Assemble(prompt, map_, frames);
    EXPECT_EQ(segments.size(), prompt.keys.size() * map_.segment_count());
    for (const auto& [place, bytes] : segments) {
      EXPECT_EQ(bytes,
                SegmentBytes(prompt.keys[place.first], map_.SegmentAt(place.second), bytes.size()));
    }
  }

  grpc::Status ClearScope() {
    v1::ClearScopeRequest request;
    request.set_fingerprint(fingerprint_);
    request.mutable_scope()->set_tenant("public");
    v1::ClearScopeResponse response;
    return stub_->ClearScope(Context().get(), request, &response);
  }

  MemoryDiskTier disk_{uint64_t{192} << 20};
  v1::BlockState leased_from_ = v1::BLOCK_STATE_UNSPECIFIED;  // Of the last ExpectReadable.
  std::shared_ptr<absl::Notification> held_;                  // Shared with calls that wait for it.
  uint32_t filler_seed_ = 1'000;
};

TEST_F(DiskNodeTest, BlocksThatWereEvictedAreOnDiskAndComeBack) {
  const TestPrompt prompt = PutOnDisk(1);
  EXPECT_EQ(StateOf(prompt), v1::BLOCK_STATE_DISK);
  EXPECT_EQ(Present(prompt), kPromptBlocks);
  ExpectReadable(prompt);
  EXPECT_EQ(leased_from_, v1::BLOCK_STATE_DISK);
  EXPECT_EQ(StateOf(prompt), v1::BLOCK_STATE_HOST);
  ExpectReadable(prompt);
  EXPECT_EQ(leased_from_, v1::BLOCK_STATE_HOST);
  EXPECT_EQ(Describe().load().leases(), 0u);
}

TEST_F(DiskNodeTest, GetSaysThatABlockIsOnDiskAndLoadsNothing) {
  const TestPrompt prompt = PutOnDisk(1);
  std::vector<v1::GetResponse> frames;
  ASSERT_TRUE(Get(GetRequestOf(prompt), &frames).ok());
  size_t pieces = 0;
  for (const v1::GetResponse& frame : frames) {
    for (const v1::Piece& piece : frame.pieces()) {
      ++pieces;
      EXPECT_EQ(piece.state(), v1::BLOCK_STATE_DISK);
    }
    EXPECT_EQ(frame.payload(), "");
  }
  EXPECT_EQ(pieces, kPromptBlocks);
  EXPECT_EQ(disk_.calls(DiskCall::kRead), 0u);
}

TEST_F(DiskNodeTest, APrefetchAnswersAtOnceAndLoadsEachBlockOnce) {
  const TestPrompt prompt = PutOnDisk(1);
  Hold(DiskCall::kRead);
  v1::LookupRequest request = LookupRequestOf(prompt);
  request.set_promote(true);
  EXPECT_EQ(StateIn(Lookup(request)), v1::BLOCK_STATE_PENDING);
  EXPECT_EQ(StateIn(Lookup(request)), v1::BLOCK_STATE_PENDING);
  EXPECT_EQ(Disk().loads(), kPromptBlocks);
  LetGo();
  request.set_wait_ms(10'000);
  EXPECT_EQ(StateIn(Lookup(request)), v1::BLOCK_STATE_HOST);
  EXPECT_EQ(disk_.calls(DiskCall::kRead), kPromptBlocks);
}

TEST_F(DiskNodeTest, AWaitThatEndsLeasesWhatIsThere) {
  const TestPrompt prompt = PutOnDisk(1);
  Hold(DiskCall::kRead);
  v1::LookupRequest request = LookupRequestOf(prompt);
  request.mutable_lease()->set_readers(2);
  request.set_wait_ms(1);
  const v1::LookupResponse response = Lookup(request);
  EXPECT_EQ(response.results(0).blocks_leased(), 0u);
  EXPECT_EQ(response.lease(), "");
  EXPECT_EQ(Describe().load().leases(), 0u);
  LetGo();
}

TEST_F(DiskNodeTest, AClientThatIsGoneLeavesNoLease) {
  const TestPrompt prompt = PutOnDisk(1);
  Hold(DiskCall::kRead);
  v1::LookupRequest request = LookupRequestOf(prompt);
  request.mutable_lease()->set_readers(3);
  request.set_wait_ms(10'000);
  const auto context = Context();
  std::thread client([&] {
    v1::LookupResponse response;
    EXPECT_EQ(stub_->Lookup(context.get(), request, &response).error_code(),
              grpc::StatusCode::CANCELLED);
  });
  while (Describe().load().leases() == 0) std::this_thread::yield();
  context->TryCancel();
  client.join();
  while (Describe().load().leases() > 0) std::this_thread::yield();
  LetGo();
}

TEST_F(DiskNodeTest, ADamagedBlockIsAMissAndCanBeWrittenAnew) {
  const TestPrompt prompt = PutOnDisk(1);
  for (const uint64_t file : disk_.files()) disk_.DamageFile(file);
  v1::LookupRequest request = LookupRequestOf(prompt);
  request.set_promote(true);
  request.set_wait_ms(10'000);
  EXPECT_EQ(Lookup(request).results(0).blocks_present(), 0u);
  EXPECT_GT(Describe().quarantined(), 0u);
  Put(prompt);
  ExpectReadable(prompt);
}

TEST_F(DiskNodeTest, AFailingDiskIsSaidEverywhereAndComesBackByItself) {
  const TestPrompt prompt = PutOnDisk(1);
  const auto context = Context();
  const auto feed = stub_->WatchBlocks(context.get());
  const auto await_heartbeat = [&](v1::DiskHealth health) {
    v1::WatchBlocksResponse message;
    while (feed->Read(&message)) {
      if (message.has_hello()) {
        EXPECT_EQ(message.hello().tiers_size(), 2);
      }
      if (message.has_heartbeat() && message.heartbeat().disk().health() == health) return true;
    }
    return false;
  };
  EXPECT_TRUE(await_heartbeat(v1::DISK_HEALTH_SERVING));
  disk_.Fail(DiskCall::kProbe, absl::UnavailableError("EIO"), MemoryDiskTier::kUntilHealed);
  disk_.Fail(DiskCall::kStartFile, absl::UnavailableError("EIO"), MemoryDiskTier::kUntilHealed);
  Put(MakePrompt(2, 1));
  AwaitDisk([](const v1::DiskReport& disk) { return disk.health() == v1::DISK_HEALTH_FAILING; });
  EXPECT_THAT(Disk().reason(), Not(""));
  EXPECT_TRUE(await_heartbeat(v1::DISK_HEALTH_FAILING));
  EXPECT_THAT(node_->metrics().Text(), HasSubstr("cairn_disk_health{state=\"failing\"} 1\n"));
  while (StateOf(prompt) != v1::BLOCK_STATE_LOAD_FAILED) std::this_thread::yield();
  Put(MakePrompt(3, 1));

  disk_.Heal();
  EXPECT_TRUE(await_heartbeat(v1::DISK_HEALTH_SERVING));
  while (StateOf(prompt) != v1::BLOCK_STATE_DISK) std::this_thread::yield();
  ExpectReadable(prompt);
  context->TryCancel();
  feed->Finish();
}

TEST_F(DiskNodeTest, ADiskThatHangsHoldsUpOnlyWhatNeedsIt) {
  const TestPrompt prompt = PutOnDisk(1);
  const TestPrompt doomed = MakePrompt(2, 1);
  const uint64_t before = Disk().blocks();
  Put(doomed);
  AwaitSpilled(before + 1);
  Hold(std::nullopt);
  // As many as there are threads for them.
  std::vector<std::thread> clears;
  for (int i = 0; i < 4; ++i) {
    clears.emplace_back([&] { EXPECT_TRUE(ClearScope().ok()); });
  }
  while (node_->metrics().Text().find("cairn_node_rpcs_running{method=\"ClearScope\"} 4\n") ==
         std::string::npos) {
    std::this_thread::yield();
  }
  Put(MakePrompt(3, 4));
  EXPECT_EQ(Present(MakePrompt(3, 4)), 4u);
  v1::LookupRequest request = LookupRequestOf(prompt);
  request.set_promote(true);
  Lookup(request);
  Describe();
  LetGo();
  for (std::thread& clear : clears) clear.join();
  EXPECT_EQ(Present(doomed), 0u);
}

TEST_F(DiskNodeTest, ARestartFindsTheBlocksAgain) {
  const TestPrompt prompt = PutOnDisk(1);
  Restart();
  AwaitDisk([](const v1::DiskReport& disk) { return !disk.recovering(); });
  EXPECT_EQ(StateOf(prompt), v1::BLOCK_STATE_DISK);
  ExpectReadable(prompt);
  EXPECT_THAT(node_->metrics().Text(), HasSubstr("cairn_disk_recovered_blocks_total"));
}

TEST_F(DiskNodeTest, TheFeedSaysSoWhileTheIndexComesBack) {
  PutOnDisk(1);
  Hold(DiskCall::kRecover);
  Restart();
  EXPECT_TRUE(Disk().recovering());
  const TestPrompt written = MakePrompt(2, 1);
  Put(written);
  EXPECT_EQ(Present(written), 1u);
  LetGo();
  AwaitDisk([](const v1::DiskReport& disk) { return !disk.recovering(); });
}

TEST_F(DiskNodeTest, WhatWasClearedStaysGoneAfterAKill) {
  const TestPrompt prompt = PutOnDisk(1);
  ASSERT_TRUE(ClearScope().ok());
  EXPECT_EQ(Present(prompt), 0u);
  Restart();
  AwaitDisk([](const v1::DiskReport& disk) { return !disk.recovering(); });
  EXPECT_EQ(Present(prompt), 0u);
}

TEST_F(DiskNodeTest, AClearThatCannotBeMadeDurableIsRefused) {
  const TestPrompt prompt = MakePrompt(1, 1);
  Put(prompt);
  disk_.Fail(DiskCall::kPutFence, absl::UnavailableError("EIO"));
  EXPECT_EQ(ClearScope().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Present(prompt), 1u);
}

TEST_F(DiskNodeTest, ADrainWritesWhatIsOnlyInMemory) {
  NodeConfig config = DiskConfigOfNode();
  config.disk.spill_admission = "second-touch";
  config.drain_grace = absl::Minutes(1);
  Restart(config);
  const TestPrompt prompt = MakePrompt(1, kPromptBlocks);
  Put(prompt);
  EXPECT_EQ(Disk().blocks(), 0u);
  const auto context = Context();
  const auto feed = stub_->WatchBlocks(context.get());
  v1::WatchBlocksResponse message;
  ASSERT_TRUE(feed->Read(&message));  // A node that drains takes no new watcher.
  Hold(DiskCall::kStartFile);
  std::thread drain([&] { node_->Drain(); });
  // It waits, however many of the node's ticks go by.
  int beats = 0;
  while (beats < 5 && feed->Read(&message)) {
    beats += message.heartbeat().drain_state() == v1::DRAIN_STATE_DRAINING ? 1 : 0;
  }
  EXPECT_EQ(beats, 5);
  LetGo();
  drain.join();
  context->TryCancel();
  feed->Finish();
  Restart(config);
  AwaitDisk([](const v1::DiskReport& disk) { return !disk.recovering(); });
  EXPECT_EQ(StateOf(prompt), v1::BLOCK_STATE_DISK);
}

TEST_F(DiskNodeTest, ADrainDoesNotWaitForADiskThatFails) {
  NodeConfig config = DiskConfigOfNode();
  config.drain_grace = absl::Hours(1);
  Restart(config);
  disk_.Fail(DiskCall::kProbe, absl::UnavailableError("EIO"), MemoryDiskTier::kUntilHealed);
  disk_.Fail(DiskCall::kStartFile, absl::UnavailableError("EIO"), MemoryDiskTier::kUntilHealed);
  Put(MakePrompt(1, kPromptBlocks));
  AwaitDisk([](const v1::DiskReport& disk) { return disk.health() == v1::DISK_HEALTH_FAILING; });
  node_->Drain();
}

TEST_F(DiskNodeTest, ADiskThatFailsAtTheStartIsNoReasonNotToServe) {
  disk_.Fail(DiskCall::kReadLedger, absl::UnavailableError("EIO"), 5);
  Restart();
  const TestPrompt prompt = MakePrompt(1, 1);
  Put(prompt);
  EXPECT_EQ(Present(prompt), 1u);
  AwaitDisk([](const v1::DiskReport& disk) { return !disk.recovering(); });
}

TEST_F(DiskNodeTest, ANodeWithoutADiskTierSaysNothingOfOne) {
  StartNode(SmallConfig());
  EXPECT_FALSE(Describe().node().has_disk());
  EXPECT_EQ(Describe().node().tiers_size(), 1);
  EXPECT_THAT(node_->metrics().Text(), Not(HasSubstr("cairn_disk_")));
}

}  // namespace
}  // namespace cairn::node
