// Method: a whole node beside an emulated device, with a pool that holds 64 blocks, so that others
// push a prompt out of it. Conditions are awaited by asking the node.
#include <gmock/gmock.h>

#include <algorithm>
#include <thread>

#include "tests/cache_node/service/node_fixture.h"

namespace cairn::node {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr size_t kPoolBlocks = 64;
constexpr size_t kPromptBlocks = 8;

class DeviceNodeTest : public NodeFixture {
 protected:
  DeviceNodeTest() { StartNode(DeviceConfigOfNode()); }
  ~DeviceNodeTest() override {
    stub_ = nullptr;
    node_ = nullptr;
  }

  static NodeConfig DeviceConfigOfNode() {
    NodeConfig config = SmallConfig();
    config.host_memory = ByteSize::MiB(1);
    config.device.device = "emulated";
    config.device.bytes = ByteSize::MiB(4);
    return config;
  }

  StoreStatus Status() { return node_->store().Status(); }
  // The prompt, and others that fill the pool, all of which the device has.
  TestPrompt PutOnDevice(uint32_t seed) {
    const TestPrompt prompt = MakePrompt(seed, kPromptBlocks);
    PutAndAwait(prompt);
    for (uint32_t i = 1; i <= 2 * kPoolBlocks / kPromptBlocks; ++i) {
      PutAndAwait(MakePrompt(1000 * seed + i, kPromptBlocks));
    }
    return prompt;
  }
  void PutAndAwait(const TestPrompt& prompt) {
    const uint64_t before = Status().device_blocks;
    Put(prompt);
    while (Status().device_blocks < before + prompt.keys.size()) std::this_thread::yield();
  }

  v1::LookupResponse Lookup(const v1::LookupRequest& request) {
    v1::LookupResponse response;
    const grpc::Status status = stub_->Lookup(Context().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  // Of all blocks; UNSPECIFIED when they differ.
  static v1::BlockState StateIn(const v1::LookupResponse& response) {
    const auto& runs = response.results(0).runs();
    return runs.size() == 1 ? runs[0].state() : v1::BLOCK_STATE_UNSPECIFIED;
  }
};

TEST_F(DeviceNodeTest, EvictedBlocksAreOnTheDeviceAndALeaseThatWaitsReadsThem) {
  const TestPrompt prompt = PutOnDevice(1);
  EXPECT_EQ(StateIn(Lookup(LookupRequestOf(prompt))), v1::BLOCK_STATE_DEVICE);
  EXPECT_EQ(Present(prompt), kPromptBlocks);
  v1::LookupRequest request = LookupRequestOf(prompt);
  request.mutable_lease()->set_readers(1);
  request.set_wait_ms(10'000);
  const v1::LookupResponse leased = Lookup(request);
  EXPECT_EQ(leased.results(0).blocks_leased(), kPromptBlocks);
  EXPECT_EQ(StateIn(leased), v1::BLOCK_STATE_DEVICE);
  v1::GetRequest get = GetRequestOf(prompt);
  get.set_lease(leased.lease());
  std::vector<v1::GetResponse> frames;
  ASSERT_TRUE(Get(get, &frames).ok());
  const auto segments = Assemble(prompt, map_, frames);
  EXPECT_EQ(segments.size(), kPromptBlocks * map_.segment_count());
  for (const auto& [place, bytes] : segments) {
    EXPECT_EQ(bytes,
              SegmentBytes(prompt.keys[place.first], map_.SegmentAt(place.second), bytes.size()));
  }
  v1::EndLeaseRequest end;
  end.set_lease(leased.lease());
  end.add_usable_blocks(kPromptBlocks);
  v1::EndLeaseResponse ended;
  EXPECT_TRUE(stub_->EndLease(Context().get(), end, &ended).ok());
  EXPECT_EQ(StateIn(Lookup(LookupRequestOf(prompt))), v1::BLOCK_STATE_HOST);
  EXPECT_EQ(node_->counters().hit_tokens_disk.load(), 0u);
  EXPECT_GT(node_->counters().hit_tokens_device.load(), 0u);
}

TEST_F(DeviceNodeTest, GetSaysThatABlockIsOnTheDeviceAndLoadsNothing) {
  const TestPrompt prompt = PutOnDevice(1);
  std::vector<v1::GetResponse> frames;
  ASSERT_TRUE(Get(GetRequestOf(prompt), &frames).ok());
  for (const v1::GetResponse& frame : frames) {
    for (const auto& piece : frame.pieces()) EXPECT_EQ(piece.state(), v1::BLOCK_STATE_DEVICE);
  }
  EXPECT_EQ(node_->counters().device_loads.load(), 0u);
}

TEST_F(DeviceNodeTest, NodeSaysItsTiersAndItsMemory) {
  const v1::DescribeResponse response = Describe();
  EXPECT_THAT(response.node().tiers(), ElementsAre(v1::TIER_DEVICE, v1::TIER_HOST));
  uint64_t emulated = 0;
  for (const v1::MemoryTerm& term : response.memory()) {
    if (term.name() == "emulated device") emulated = term.bytes();
  }
  EXPECT_EQ(emulated, ByteSize::MiB(4).bytes());
}

TEST_F(DeviceNodeTest, MetricsSayWhatTheDeviceHoldsAndDoes) {
  PutOnDevice(1);
  const std::string text = node_->metrics().Text();
  EXPECT_THAT(text, HasSubstr("cairn_device_blocks 136"));
  EXPECT_THAT(text, HasSubstr("cairn_device_uploaded_blocks_total 136"));
  EXPECT_THAT(text, HasSubstr("cairn_device_failed 0"));
}

TEST_F(DeviceNodeTest, DeletedBlocksAreGoneFromTheDevice) {
  const TestPrompt prompt = PutOnDevice(1);
  v1::DeleteRequest request;
  request.set_fingerprint(fingerprint_);
  for (const BlockKey& key : prompt.keys) request.mutable_keys()->append(std::string(key.view()));
  v1::DeleteResponse response;
  ASSERT_TRUE(stub_->Delete(Context().get(), request, &response).ok());
  EXPECT_EQ(Present(prompt), 0u);
}

TEST_F(DeviceNodeTest, DeviceThatIsNotThereIsSaidAtTheStart) {
  NodeConfig config = DeviceConfigOfNode();
  config.device.device = "cuda:1000";
  const absl::Status status = Node::Start(config).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--device=cuda:1000: "));
}

}  // namespace
}  // namespace cairn::node
