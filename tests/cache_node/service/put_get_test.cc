// Method: whole puts and gets through the generated classes over a real channel, every byte
// compared.
#include <gmock/gmock.h>

#include "common/identity/segment_digest.h"
#include "common/rpc/id_conversion.h"
#include "tests/cache_node/service/node_fixture.h"
#include "tests/testing/identity_samples.h"

namespace cairn::node {
namespace {

class PutGetTest : public NodeFixture {
 protected:
  // All of `prompt`'s segments have their bytes.
  void ExpectAll(const TestPrompt& prompt, const std::vector<v1::GetResponse>& frames) {
    const auto segments = Assemble(prompt, map_, frames);
    EXPECT_EQ(segments.size(), prompt.keys.size() * map_.segment_count());
    for (const auto& [place, bytes] : segments) {
      EXPECT_EQ(bytes, SegmentBytes(prompt.keys[place.first], map_.SegmentAt(place.second),
                                    map_.SegmentBytesAt(place.second)));
    }
  }
};

TEST_F(PutGetTest, WhatWasPutComesBack) {
  const TestPrompt prompt = MakePrompt(1, 5);
  EXPECT_EQ(Present(prompt), 0u);
  Put(prompt);
  EXPECT_EQ(Present(prompt), 5u);
  std::vector<v1::GetResponse> frames;
  const grpc::Status status = Get(GetRequestOf(prompt), &frames);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ExpectAll(prompt, frames);
}

TEST_F(PutGetTest, ManyBlocksPackIntoFullFrames) {
  const TestPrompt prompt = MakePrompt(1, 160);  // 16 KiB each.
  Put(prompt);
  std::vector<v1::GetResponse> frames;
  ASSERT_TRUE(Get(GetRequestOf(prompt), &frames).ok());
  ExpectAll(prompt, frames);
  EXPECT_EQ(frames.size(), 3u);
}

TEST_F(PutGetTest, NothingIsPinnedAfterwards) {
  const TestPrompt prompt = MakePrompt(1, 40);
  Put(prompt);
  std::vector<v1::GetResponse> frames;
  ASSERT_TRUE(Get(GetRequestOf(prompt), &frames).ok());
  // gRPC lets go of the last slices when they are in the socket.
  while (Describe().pins() > 0) {
  }
  EXPECT_EQ(Describe().load().host_reserved_bytes(), 0u);
  EXPECT_TRUE(node_->store().Audit().ok()) << node_->store().Audit();
}

TEST_F(PutGetTest, AtTheTimeThatTheWriterSaidItIsGone) {
  const TestPrompt keeps = MakePrompt(1, 2);
  Put(keeps);
  const TestPrompt leaves = MakePrompt(2, 2);
  v1::ReserveRequest request = ReserveRequestOf(leaves);
  request.mutable_retention()->set_ttl_ms(1);
  v1::ReserveResponse response;
  ASSERT_TRUE(stub_->Reserve(Context().get(), request, &response).ok());
  ASSERT_FALSE(response.token().empty());
  while (node_->counters().expired_blocks.load() < 2) {
  }
  EXPECT_EQ(Present(leaves), 0u);
  EXPECT_EQ(Present(keeps), 2u);
}

TEST_F(PutGetTest, SelectedLayersCome) {
  const TestPrompt prompt = MakePrompt(1, 3);
  Put(prompt);
  v1::GetRequest request = GetRequestOf(prompt);
  v1::PartSelector* selector = request.add_parts();
  selector->set_first_layer(1);
  selector->set_layers(1);
  std::vector<v1::GetResponse> frames;
  ASSERT_TRUE(Get(request, &frames).ok());
  const auto segments = Assemble(prompt, map_, frames);
  ASSERT_EQ(segments.size(), 3u);
  for (const auto& [place, bytes] : segments) EXPECT_EQ(place.second, 1u);
}

TEST_F(PutGetTest, SegmentLargerThanAFrameTravelsInRanges) {
  namespace_.model = "large";
  namespace_.layout.groups = {
      {.layers = 2, .dtype = Dtype::kOpaque, .opaque_bytes = (3 << 20) / 2 / 16}};
  map_ = *PayloadMap::Make(namespace_.layout);
  fingerprint_ = Register(namespace_, "large");
  const TestPrompt prompt = MakePrompt(1, 2);
  const std::string token = Reserve(prompt);
  std::vector<v1::WriteRequest> frames;
  for (uint32_t block = 0; block < 2; ++block) {
    const v1::WriteRequest whole = FrameOf(token, prompt, block);
    const uint64_t size = map_.SegmentBytesAt(0);
    for (uint32_t layer = 0; layer < 2; ++layer) {
      for (uint64_t offset = 0; offset < size; offset += 1 << 20) {
        v1::WriteRequest& frame = frames.emplace_back();
        frame.set_token(token);
        v1::Piece* piece = frame.add_pieces();
        piece->set_block(block);
        piece->set_layer(layer);
        piece->set_offset(static_cast<uint32_t>(offset));
        piece->set_length(static_cast<uint32_t>(std::min<uint64_t>(1 << 20, size - offset)));
        piece->add_digests(whole.pieces(0).digests(static_cast<int>(layer)));
        frame.set_payload(whole.payload().substr(layer * size + offset, piece->length()));
      }
    }
  }
  const grpc::Status written = WriteFrames(frames);
  ASSERT_TRUE(written.ok()) << written.error_message();
  v1::CommitResponse committed;
  ASSERT_TRUE(stub_->Commit(Context().get(), CommitRequestOf(token, prompt), &committed).ok());
  EXPECT_TRUE(committed.complete()) << committed.ShortDebugString();
  std::vector<v1::GetResponse> got;
  ASSERT_TRUE(Get(GetRequestOf(prompt), &got).ok());
  ExpectAll(prompt, got);
}

TEST_F(PutGetTest, MissingBlocksAreStatesNotErrors) {
  const TestPrompt prompt = MakePrompt(1, 2);
  const TestPrompt other = MakePrompt(2, 1);
  Put(prompt);
  v1::GetRequest request = GetRequestOf(prompt);
  request.set_keys(KeysToProto(other.keys) + KeysToProto(prompt.keys));
  std::vector<v1::GetResponse> frames;
  ASSERT_TRUE(Get(request, &frames).ok());
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].pieces(0).state(), v1::BLOCK_STATE_NEVER_SEEN);
  EXPECT_EQ(frames[0].pieces(0).block(), 0u);
  EXPECT_EQ(frames[0].pieces(1).block(), 1u);
  EXPECT_EQ(frames[0].pieces(1).state(), v1::BLOCK_STATE_UNSPECIFIED);
}

TEST_F(PutGetTest, UnknownNamespaceIsAMissThatSaysSo) {
  const TestPrompt prompt = MakePrompt(1, 2);
  fingerprint_ = std::string(32, 'x');
  v1::LookupResponse lookup;
  ASSERT_TRUE(stub_->Lookup(Context().get(), LookupRequestOf(prompt), &lookup).ok());
  EXPECT_FALSE(lookup.namespace_known());
  EXPECT_EQ(lookup.results_size(), 1);
  std::vector<v1::GetResponse> frames;
  ASSERT_TRUE(Get(GetRequestOf(prompt), &frames).ok());
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].pieces(1).state(), v1::BLOCK_STATE_NAMESPACE_UNKNOWN);
}

TEST_F(PutGetTest, DeletedAndRetiredBlocksAreGone) {
  const TestPrompt first = MakePrompt(1, 2);
  const TestPrompt second = MakePrompt(2, 2);
  Put(first);
  Put(second);
  v1::DeleteRequest deletion;
  deletion.set_fingerprint(fingerprint_);
  deletion.set_keys(KeysToProto(first.keys));
  v1::DeleteResponse deleted;
  ASSERT_TRUE(stub_->Delete(Context().get(), deletion, &deleted).ok());
  EXPECT_THAT(deleted.removed(), ::testing::ElementsAre(true, true));
  EXPECT_EQ(Present(first), 0u);
  EXPECT_EQ(Present(second), 2u);

  v1::ClearScopeRequest clearing;
  clearing.set_fingerprint(fingerprint_);
  v1::ClearScopeResponse cleared;
  ASSERT_TRUE(stub_->ClearScope(Context().get(), clearing, &cleared).ok());
  EXPECT_EQ(cleared.blocks(), 2u);
  EXPECT_EQ(Present(second), 0u);

  v1::RetireNamespaceRequest retirement;
  retirement.set_fingerprint(fingerprint_);
  v1::RetireNamespaceResponse retired;
  ASSERT_TRUE(stub_->RetireNamespace(Context().get(), retirement, &retired).ok());
  EXPECT_TRUE(retired.done());
  v1::LookupResponse lookup;
  ASSERT_TRUE(stub_->Lookup(Context().get(), LookupRequestOf(second), &lookup).ok());
  EXPECT_FALSE(lookup.namespace_known());
}

TEST_F(PutGetTest, CommitOfNothingSaysWhatIsMissing) {
  const TestPrompt prompt = MakePrompt(1, 2);
  const std::string token = Reserve(prompt);
  ASSERT_TRUE(WriteFrames({FrameOf(token, prompt, 0)}).ok());
  v1::CommitRequest request = CommitRequestOf(token, prompt);
  request.mutable_pieces()->DeleteSubrange(1, 1);
  v1::CommitResponse response;
  ASSERT_TRUE(stub_->Commit(Context().get(), request, &response).ok());
  EXPECT_FALSE(response.complete());
  request.clear_pieces();
  ASSERT_TRUE(stub_->Commit(Context().get(), request, &response).ok());
  EXPECT_EQ(response.blocks_present(), 1u);
  ASSERT_EQ(response.missing_size(), 1);
  EXPECT_EQ(response.missing(0).block(), 1u);
  EXPECT_EQ(response.missing(0).length(), 2u);  // Layers.
  EXPECT_EQ(Present(prompt), 1u);
}

TEST_F(PutGetTest, DescribeSaysWhatIsThere) {
  Put(MakePrompt(1, 3));
  const v1::DescribeResponse described = Describe();
  EXPECT_EQ(described.node().node_id(), "node-1");
  EXPECT_EQ(described.node().worker_address(), "worker:1");
  EXPECT_EQ(described.node().incarnation().size(), 16u);
  EXPECT_EQ(described.node().addresses(0), node_->addresses().front());
  EXPECT_EQ(described.blocks(), 3u);
  ASSERT_EQ(described.namespaces_size(), 1);
  EXPECT_EQ(described.namespaces(0).blocks(), 3u);
  EXPECT_EQ(described.namespaces(0).name(), "model");
  EXPECT_EQ(described.shards_size(), 64);
  uint64_t sum = 0;
  for (const v1::MemoryTerm& term : described.memory()) sum += term.bytes();
  EXPECT_GT(sum, uint64_t{64} << 20);
  EXPECT_LE(sum, described.memory_limit_bytes());
}

TEST_F(PutGetTest, CallsAreCountedByMethodAndCode) {
  Put(MakePrompt(1, 1));
  std::vector<v1::GetResponse> frames;
  v1::GetRequest bad;
  EXPECT_FALSE(Get(bad, &frames).ok());
  const std::string text = node_->metrics().Text();
  EXPECT_THAT(text, ::testing::HasSubstr(
                        "cairn_node_rpcs_total{code=\"INVALID_ARGUMENT\",method=\"Get\"} 1"));
  EXPECT_THAT(text, ::testing::HasSubstr("cairn_node_committed_blocks_total 1"));
}

}  // namespace
}  // namespace cairn::node
