// Method: frames pulled by hand from a real node's store, with something happening between two of
// them; layouts whose segments are as large and as small as they come.
#include "cache_node/service/get_frames.h"

#include <gmock/gmock.h>

#include "common/wire/frame_decoder.h"
#include "common/wire/limits.h"
#include "common/wire/message_codec.h"
#include "tests/cache_node/service/node_fixture.h"

namespace cairn::node {
namespace {

class GetFramesTest : public NodeFixture {
 protected:
  // From here on blocks have one opaque group.
  void UseLayout(uint32_t layers, uint32_t opaque_bytes) {
    namespace_.model = "other";
    namespace_.layout.groups = {
        {.layers = layers, .dtype = Dtype::kOpaque, .opaque_bytes = opaque_bytes}};
    map_ = *PayloadMap::Make(namespace_.layout);
    fingerprint_ = Register(namespace_, "other");
  }

  std::unique_ptr<GetFrames> FramesOf(const v1::GetRequest& request) {
    const Fingerprint fingerprint = *Fingerprint::FromBytes(fingerprint_);
    const auto plan = MakeGetPlan(request, node_->store().FindPayloadMap(fingerprint));
    EXPECT_TRUE(plan.ok()) << plan.status();
    return std::make_unique<GetFrames>(&node_->store(), &pin_count_, "public", *plan);
  }

  static v1::GetResponse Decoded(const grpc::ByteBuffer& frame) {
    v1::GetResponse response;
    EXPECT_TRUE(DecodeMessage(frame, &response).ok());
    return response;
  }

  void Retire() {
    v1::RetireNamespaceRequest request;
    request.set_fingerprint(fingerprint_);
    v1::RetireNamespaceResponse response;
    EXPECT_TRUE(stub_->RetireNamespace(Context().get(), request, &response).ok());
    EXPECT_TRUE(response.done());
  }

  PinCount pin_count_;
};

TEST_F(GetFramesTest, NoFrameAfterARetirementHasBytes) {
  const TestPrompt prompt = MakePrompt(1, 160);
  Put(prompt);
  const std::unique_ptr<GetFrames> frames = FramesOf(GetRequestOf(prompt));
  EXPECT_EQ(Decoded(**frames->Next()).payload().size(), kFramePayloadBytesMax);
  Retire();
  for (auto next = frames->Next(); next->has_value(); next = frames->Next()) {
    const v1::GetResponse frame = Decoded(**next);
    EXPECT_TRUE(frame.payload().empty());
    for (const v1::Piece& piece : frame.pieces()) {
      EXPECT_NE(piece.state(), v1::BLOCK_STATE_UNSPECIFIED);
    }
  }
}

TEST_F(GetFramesTest, BlockThatIsDeletedHalfwaySaysSoAndSendsNoMore) {
  UseLayout(2, 98304);  // Segments of 1.5 MiB.
  const TestPrompt prompt = MakePrompt(1, 1);
  const std::string token = Reserve(prompt);
  const v1::WriteRequest whole = FrameOf(token, prompt, 0);
  std::vector<v1::WriteRequest> pieces;
  for (uint32_t i = 0; i < 4; ++i) {
    v1::WriteRequest& frame = pieces.emplace_back();
    frame.set_token(token);
    v1::Piece* piece = frame.add_pieces();
    piece->set_layer(i / 2);
    piece->set_offset(i % 2 * (1 << 20));
    piece->set_length(i % 2 == 0 ? 1 << 20 : 1 << 19);
    piece->add_digests(whole.pieces(0).digests(static_cast<int>(i / 2)));
    frame.set_payload(
        whole.payload().substr(piece->layer() * (3 << 19) + piece->offset(), piece->length()));
  }
  ASSERT_TRUE(WriteFrames(pieces).ok());
  v1::CommitResponse committed;
  ASSERT_TRUE(stub_->Commit(Context().get(), CommitRequestOf(token, prompt), &committed).ok());
  ASSERT_TRUE(committed.complete());

  const std::unique_ptr<GetFrames> frames = FramesOf(GetRequestOf(prompt));
  EXPECT_FALSE(Decoded(**frames->Next()).payload().empty());
  v1::DeleteRequest deletion;
  deletion.set_fingerprint(fingerprint_);
  deletion.set_keys(std::string(prompt.keys[0].view()));
  v1::DeleteResponse deleted;
  ASSERT_TRUE(stub_->Delete(Context().get(), deletion, &deleted).ok());
  const v1::GetResponse frame = Decoded(**frames->Next());
  EXPECT_TRUE(frame.payload().empty());
  ASSERT_EQ(frame.pieces_size(), 1);
  EXPECT_EQ(frame.pieces(0).state(), v1::BLOCK_STATE_DELETED);
  EXPECT_FALSE((*frames->Next()).has_value());
}

TEST_F(GetFramesTest, TinySegmentsStayWithinTheHeader) {
  UseLayout(4096, 4);  // Segments of 64 bytes: the digests of a full frame would be 128 KiB.
  const TestPrompt prompt = MakePrompt(1, 4);
  Put(prompt);
  std::vector<v1::GetResponse> frames;
  ASSERT_TRUE(Get(GetRequestOf(prompt), &frames).ok());
  EXPECT_GT(frames.size(), 1u);
  for (const v1::GetResponse& frame : frames) {
    EXPECT_LE(frame.ByteSizeLong() - frame.payload().size(), kFrameHeaderBytesMax);
  }
  EXPECT_EQ(Assemble(prompt, map_, frames).size(), 4u * 4096u);
}

TEST_F(GetFramesTest, ManyMissesFitInFrames) {
  TestPrompt prompt;
  for (uint32_t seed = 1; seed <= 16; ++seed) {
    const TestPrompt other = MakePrompt(seed, 256);
    prompt.keys.insert(prompt.keys.end(), other.keys.begin(), other.keys.end());
  }
  ASSERT_EQ(prompt.keys.size(), kKeysPerGetMax);
  std::vector<v1::GetResponse> frames;
  ASSERT_TRUE(Get(GetRequestOf(prompt), &frames).ok());
  size_t states = 0;
  for (const v1::GetResponse& frame : frames) states += static_cast<size_t>(frame.pieces_size());
  EXPECT_EQ(states, kKeysPerGetMax);
}

TEST_F(GetFramesTest, PinLivesAsLongAsItsSlices) {
  const TestPrompt prompt = MakePrompt(1, 1);
  Put(prompt);
  std::unique_ptr<GetFrames> frames = FramesOf(GetRequestOf(prompt));
  std::optional<grpc::ByteBuffer> frame = *std::move(frames->Next());
  frames = nullptr;
  EXPECT_EQ(node_->store().Status().pins, 1u);
  EXPECT_EQ(pin_count_.pins(), 1u);
  Retire();
  const v1::GetResponse decoded = Decoded(*frame);
  EXPECT_EQ(decoded.payload().substr(0, 64),
            SegmentBytes(prompt.keys[0], {0, 0, 0}, map_.SegmentBytesAt(0)).substr(0, 64));
  frame.reset();
  EXPECT_EQ(node_->store().Status().pins, 0u);
  EXPECT_EQ(pin_count_.pins(), 0u);
}

}  // namespace
}  // namespace cairn::node
