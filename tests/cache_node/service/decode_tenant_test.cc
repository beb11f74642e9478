// Served attention of callers that are told apart: a tenant's full blocks are published for it,
// what is another tenant's is as unknown as what never was, and a stream ends with its caller's
// rights.
#include <gmock/gmock.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/base/hex.h"
#include "common/identity/sha256.h"
#include "tests/cache_node/service/decode_fixture.h"

namespace cairn::node {
namespace {

constexpr char kAcme[] = "the-token-of-acme";
constexpr char kOther[] = "the-token-of-another";
constexpr char kRouter[] = "the-token-of-a-router";

class DecodeTenantTest : public DecodeFixture {
 protected:
  DecodeTenantTest()
      : base_(absl::StrCat(::testing::TempDir(), "/cairn_decode_",
                           ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    Replace("access",
            "token:acme worker,admin acme\ntoken:other worker,admin other\n"
            "token:router router acme\n");
    Replace("tokens",
            absl::StrCat(Line("acme", kAcme), Line("other", kOther), Line("router", kRouter)));
    tenant_ = "acme";
    token_ = kAcme;
    NodeConfig config = DecodeConfigOfTests();
    config.security.access_file = base_ + "access";
    config.security.token_file = base_ + "tokens";
    StartDecodeNode(config);
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
  uint32_t PresentToTenant(const TestPrompt& prompt) {
    v1::LookupRequest request = LookupRequestOf(prompt);
    request.mutable_prompts(0)->mutable_regions(0)->mutable_scope()->set_tenant(tenant_);
    v1::LookupResponse response;
    EXPECT_TRUE(stub_->Lookup(CallerContext().get(), request, &response).ok());
    return response.results(0).blocks_present();
  }

  const std::string base_;
};

TEST_F(DecodeTenantTest, BlocksThatFillArePublishedAndFoundByOthers) {
  const TestPrompt prompt = MakePrompt(5, 3);  // Nothing of it is there.
  const std::string id = OpenSequence({prompt.tokens.begin(), prompt.tokens.begin() + 4}, 64);
  const auto stream = NewStream();
  Append(*stream, id, 0, prompt.tokens);
  while (PresentToTenant(prompt) < 3) {
  }
  const v1::AttendItem item = LeasedItem(Lease(prompt), 60);
  v1::AttendResponse attended;
  ASSERT_TRUE(Attend({item}, &attended).ok());
  ExpectAnswer(attended.results(0), item, 0, prompt.tokens);
  while (GetSequence(id).sealed_blocks() < 3) {
  }
  EXPECT_THAT(node_->metrics().Text(),
              ::testing::HasSubstr("cairn_decode_seals_total{outcome=\"sealed\"} 3"));
}

TEST_F(DecodeTenantTest, WhatIsAnothersIsAsUnknownAsWhatNeverWas) {
  const TestPrompt prompt = PutPrompt(1, 2);
  const std::string lease = Lease(prompt);
  const std::string id = OpenSequence(prompt.tokens, 16);
  token_ = kOther;
  tenant_ = "other";
  // They know the namespace too.
  ASSERT_EQ(Register(namespace_, "theirs"), fingerprint_);
  const auto stream = NewStream();
  const auto results = stream->Ask(
      1, 0, {LeasedItem(lease, 40), SequenceItem(id, 40), SequenceItem(std::string(16, 'n'), 40)});
  ASSERT_EQ(results.size(), 3u);
  for (const v1::AttendResult& result : results) {
    EXPECT_EQ(result.code(), static_cast<int>(absl::StatusCode::kAborted)) << result.message();
  }
  EXPECT_EQ(results[1].message(), results[2].message());
  EXPECT_EQ(Close(id), 0u);
  v1::GetSequenceRequest get;
  get.set_sequence(id);
  v1::GetSequenceResponse response;
  EXPECT_EQ(decode_->GetSequence(CallerContext().get(), get, &response).error_code(),
            grpc::StatusCode::ABORTED);
  v1::OpenSequenceRequest open = OpenRequestOf(prompt.tokens, 16);
  open.mutable_prompt()->mutable_regions(0)->mutable_scope()->set_tenant("acme");
  v1::OpenSequenceResponse opened;
  EXPECT_EQ(Open(open, &opened).error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(DecodeTenantTest, OnlyWorkersAttendAndAStreamEndsWithItsCallersRights) {
  const auto stream = NewStream();
  token_ = kRouter;
  v1::AttendResponse response;
  EXPECT_EQ(Attend({}, &response).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  Replace("tokens", Line("router", kRouter));
  v1::DecodeResponse last;
  EXPECT_FALSE(stream->ReceiveAny(&last));  // Within a look at the file, though nothing is asked.
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

}  // namespace
}  // namespace cairn::node
