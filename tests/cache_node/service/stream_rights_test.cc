// Streams that are open when their caller's token is revoked, beside those of a caller who stays:
// the first end within a look at the file with why, the others are not disturbed. What a node sent
// proves it.
#include "cache_node/service/stream_rights.h"

#include <gmock/gmock.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/base/hex.h"
#include "common/identity/sha256.h"
#include "tests/cache_node/service/node_fixture.h"

namespace cairn::node {
namespace {

using ::testing::HasSubstr;

constexpr char kStays[] = "the-token-of-who-stays";
constexpr char kLeaves[] = "the-token-of-who-leaves";
// 16 KiB each: more than a transport takes unread.
constexpr size_t kLargeBlocks = 1500;

class StreamRightsTest : public NodeFixture {
 protected:
  StreamRightsTest()
      : base_(absl::StrCat(::testing::TempDir(), "/cairn_rights_",
                           ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    Replace("access", "token:stays  worker,admin  acme\ntoken:leaves worker acme\n");
    Replace("tokens", absl::StrCat(Line("stays", kStays), Line("leaves", kLeaves)));
    tenant_ = "acme";
    token_ = kStays;
    NodeConfig config = SmallConfig();
    config.security.access_file = base_ + "access";
    config.security.token_file = base_ + "tokens";
    StartNode(config);
  }

  static std::string Line(const std::string& name, const std::string& token) {
    const Sha256Digest digest = Sha256(token);
    return absl::StrCat(name, " ",
                        ToHex({reinterpret_cast<const char*>(digest.data()), digest.size()}), "\n");
  }
  void Replace(const std::string& file, const std::string& text) {
    std::ofstream(base_ + file + ".new") << text;
    ASSERT_EQ(std::rename((base_ + file + ".new").c_str(), (base_ + file).c_str()), 0);
  }
  std::unique_ptr<grpc::ClientContext> ContextOf(const std::string& token) {
    token_ = token;
    std::unique_ptr<grpc::ClientContext> context = CallerContext();
    token_ = kStays;
    return context;
  }
  grpc::StatusCode DescribeAs(const std::string& token) {
    v1::DescribeResponse response;
    return stub_->Describe(ContextOf(token).get(), {}, &response).error_code();
  }
  // The node knows that one token is no good any more.
  void Revoke() {
    Replace("tokens", Line("stays", kStays));
    while (DescribeAs(kLeaves) != grpc::StatusCode::UNAUTHENTICATED) {
    }
    EXPECT_EQ(DescribeAs(kStays), grpc::StatusCode::OK);
  }
  static uint64_t ReadAll(grpc::ClientReader<v1::GetResponse>* reader) {
    uint64_t bytes = 0;
    v1::GetResponse frame;
    while (reader->Read(&frame)) bytes += frame.payload().size();
    return bytes;
  }

  const std::string base_;
};

TEST_F(StreamRightsTest, AGetEndsAndAnotherOfWhoMayIsWhole) {
  const TestPrompt large = MakePrompt(1, kLargeBlocks);
  Put(large);
  const std::unique_ptr<v1::CacheNode::Stub> others = NewStub();
  const auto stays_context = ContextOf(kStays);
  const auto leaves_context = ContextOf(kLeaves);
  const auto stays = stub_->Get(stays_context.get(), GetRequestOf(large));
  const auto leaves = others->Get(leaves_context.get(), GetRequestOf(large));
  v1::GetResponse frame;
  ASSERT_TRUE(stays->Read(&frame));
  ASSERT_TRUE(leaves->Read(&frame));
  const uint64_t first = frame.payload().size();
  Revoke();
  const uint64_t whole = kLargeBlocks * map_.block_bytes();
  EXPECT_LT(first + ReadAll(leaves.get()), whole);
  const grpc::Status ended = leaves->Finish();
  // Cancelled when its last frame did not leave in time.
  EXPECT_TRUE(ended.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
              ended.error_code() == grpc::StatusCode::CANCELLED)
      << ended.error_message();
  EXPECT_EQ(first + ReadAll(stays.get()), whole);
  EXPECT_TRUE(stays->Finish().ok());
}

TEST_F(StreamRightsTest, AGetThatIsReadEndsWithWhy) {
  const TestPrompt large = MakePrompt(1, kLargeBlocks);
  Put(large);
  // Again and again, so that one is under way when the token goes.
  grpc::Status status = grpc::Status::OK;
  Replace("tokens", Line("stays", kStays));
  while (status.ok()) {
    const auto context = ContextOf(kLeaves);
    const auto reader = stub_->Get(context.get(), GetRequestOf(large));
    ReadAll(reader.get());
    status = reader->Finish();
  }
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << status.error_message();
}

TEST_F(StreamRightsTest, AWriteThatIsSilentEndsAndOneOfWhoMayGoesOn) {
  const auto stays_context = ContextOf(kStays);
  const auto leaves_context = ContextOf(kLeaves);
  const auto stays = stub_->Write(stays_context.get());
  const auto leaves = stub_->Write(leaves_context.get());
  const TestPrompt prompt = MakePrompt(1, 1);
  const std::string write_token = Reserve(prompt);
  Revoke();
  v1::WriteResponse response;
  EXPECT_FALSE(leaves->Read(&response));
  EXPECT_EQ(leaves->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  ASSERT_TRUE(stays->Write(FrameOf(write_token, prompt, 0)));
  EXPECT_TRUE(stays->Read(&response));
  EXPECT_TRUE(stays->WritesDone());
  EXPECT_TRUE(stays->Finish().ok());
  v1::CommitResponse committed;
  EXPECT_TRUE(
      stub_->Commit(CallerContext().get(), CommitRequestOf(write_token, prompt), &committed).ok());
  EXPECT_TRUE(committed.complete());
}

TEST_F(StreamRightsTest, AccessThatIsWithdrawnEndsStreamsToo) {
  const auto context = ContextOf(kLeaves);
  const auto writer = stub_->Write(context.get());
  Replace("access", "token:stays  worker,admin  acme\ntoken:leaves metrics -\n");
  v1::WriteResponse response;
  EXPECT_FALSE(writer->Read(&response));
  EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(StreamRightsTest, AWatchEndsWithWhy) {
  const auto context = ContextOf(kLeaves);
  const auto watch = stub_->WatchBlocks(context.get());
  v1::WatchBlocksResponse message;
  ASSERT_TRUE(watch->Read(&message));
  Revoke();
  while (watch->Read(&message)) {
  }
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

}  // namespace
}  // namespace cairn::node
