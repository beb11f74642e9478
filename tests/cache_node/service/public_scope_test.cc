// A whole node with a list of public prefixes: what may be reserved, what a changed list does, and
// what of it is counted.
#include "cache_node/tenants/public_scope.h"

#include <gmock/gmock.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/base/hex.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/status_mapping.h"
#include "tests/cache_node/service/node_fixture.h"

namespace cairn::node {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class PublicScopeTest : public NodeFixture {
 protected:
  PublicScopeTest()
      : path_(absl::StrCat(::testing::TempDir(), "/cairn_public_",
                           ::testing::UnitTest::GetInstance()->current_test_info()->name())) {}

  void WriteList(const std::string& text) {
    std::ofstream(path_ + ".new") << text;
    ASSERT_EQ(std::rename((path_ + ".new").c_str(), path_.c_str()), 0);
  }
  void StartWith(const std::string& list) {
    WriteList(list);
    NodeConfig config = SmallConfig();
    config.public_prefix_file = path_;
    StartNode(config);
  }
  static std::string LineOf(const TestPrompt& prompt) {
    return absl::StrCat(ToHex(prompt.keys.back().view()), "  # a prefix\n");
  }
  TestPrompt FirstOf(TestPrompt prompt, size_t blocks) const {
    prompt.keys.resize(blocks);
    prompt.tokens.resize(blocks * namespace_.layout.block_tokens);
    return prompt;
  }
  absl::Status TryReserve(const v1::ReserveRequest& request, v1::ReserveResponse* response) {
    return FromGrpcStatus(stub_->Reserve(Context().get(), request, response));
  }
  absl::Status TryReserve(const TestPrompt& prompt) {
    v1::ReserveResponse response;
    return TryReserve(ReserveRequestOf(prompt), &response);
  }
  bool Counts(const std::string& line) const {
    return node_->metrics().Text().find(absl::StrCat("cairn_node_", line, "\n")) !=
           std::string::npos;
  }

  const std::string path_;
};

TEST_F(PublicScopeTest, AReserveMustEndAListedPrefix) {
  const TestPrompt longest = MakePrompt(1, 4);
  const TestPrompt listed = FirstOf(longest, 3);
  StartWith(LineOf(listed));
  const absl::Status unlisted = TryReserve(MakePrompt(2, 2));
  EXPECT_EQ(unlisted.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(unlisted.message()),
              AllOf(HasSubstr(ToHex(MakePrompt(2, 2).keys.back().view())),
                    HasSubstr("--public-prefix-file"), HasSubstr("your own tenant")));
  EXPECT_EQ(ReasonOf(unlisted)->reason, "PUBLIC_PREFIX_NOT_LISTED");
  EXPECT_TRUE(absl::IsPermissionDenied(TryReserve(longest))) << "goes on past the listed end";
  EXPECT_TRUE(absl::IsPermissionDenied(TryReserve(FirstOf(listed, 2))))
      << "nobody knows where it leads";
  EXPECT_TRUE(Counts("public_refused_total 3"));
  Put(listed);
  EXPECT_EQ(Present(longest), 3u);
  // The rest of it, where a part is there.
  v1::DeleteRequest deletion;
  v1::DeleteResponse deleted;
  deletion.set_fingerprint(fingerprint_);
  deletion.set_keys(std::string(listed.keys[2].view()));
  ASSERT_TRUE(stub_->Delete(Context().get(), deletion, &deleted).ok());
  EXPECT_EQ(Present(longest), 2u);
  v1::ReserveRequest rest = ReserveRequestOf(listed);
  rest.set_keys(std::string(listed.keys[2].view()));
  rest.set_parent_key(std::string(listed.keys[1].view()));
  rest.clear_tokens();
  const uint32_t block_tokens = namespace_.layout.block_tokens;
  rest.mutable_tokens()->Add(listed.tokens.end() - block_tokens, listed.tokens.end());
  v1::ReserveResponse response;
  EXPECT_TRUE(TryReserve(rest, &response).ok());
  EXPECT_EQ(response.answers(0).outcome(), v1::RESERVE_OUTCOME_RESERVED);
  EXPECT_TRUE(Counts("public_refused_total 3"));
}

TEST_F(PublicScopeTest, AListedKeySaysNothingOfBlocksThatDoNotLeadToIt) {
  const TestPrompt listed = MakePrompt(1, 3);
  StartWith(LineOf(listed));
  // Two blocks of another prompt, and then the listed key, which its tokens do not give.
  TestPrompt other = MakePrompt(2, 3);
  other.keys[2] = listed.keys[2];
  v1::ReserveResponse response;
  ASSERT_TRUE(TryReserve(ReserveRequestOf(other), &response).ok());
  EXPECT_EQ(response.answers(0).outcome(), v1::RESERVE_OUTCOME_KEY_MISMATCH);
  EXPECT_TRUE(response.token().empty());
  EXPECT_EQ(node_->store().Status().reserved_bytes, 0u);
}

TEST_F(PublicScopeTest, WhatLeavesTheListIsGoneAndABadListChangesNothing) {
  const TestPrompt stays = MakePrompt(1, 2);
  const TestPrompt leaves = MakePrompt(2, 3);
  const TestPrompt under_way = MakePrompt(3, 2);
  StartWith(absl::StrCat(LineOf(stays), LineOf(leaves), LineOf(under_way)));
  Put(stays);
  Put(leaves);
  const std::string token = Reserve(under_way);
  WriteList("# nothing\nnot a key\n");
  while (Counts("file_read_errors_total{file=\"public-prefix\"} 0")) {
  }
  EXPECT_EQ(Present(leaves), 3u);
  WriteList(LineOf(stays));
  while (!Counts("public_removed_blocks_total 5")) {
  }
  EXPECT_EQ(Present(leaves), 0u);
  EXPECT_EQ(Present(stays), 2u);
  EXPECT_TRUE(absl::IsPermissionDenied(TryReserve(leaves)));
  std::vector<v1::WriteResponse> answers;
  (void)WriteFrames({FrameOf(token, under_way, 0)}, &answers);
  EXPECT_EQ(Present(under_way), 0u) << "what it was let reserve is gone too";
  // Listed again, it is as new.
  WriteList(absl::StrCat(LineOf(stays), LineOf(leaves)));
  while (!TryReserve(leaves).ok()) {
  }
  EXPECT_EQ(Present(stays), 2u);
}

TEST_F(PublicScopeTest, KeysOfAnEngineAreListedOneByOne) {
  const TestPrompt prompt = MakePrompt(1, 2);
  absl::StatusOr<std::unique_ptr<PublicPrefixFile>> file = PublicPrefixFile::Open(
      "list", PublicPrefixes::Parse, [&](const std::string&) { return LineOf(prompt); });
  ASSERT_TRUE(file.ok()) << file.status();
  const PublicScope scope(*std::move(file), &node_->store());
  EXPECT_TRUE(scope.Check(KeyScheme::kCairn, prompt.keys).ok());
  const absl::Status refused = scope.Check(KeyScheme::kExternal, prompt.keys);
  EXPECT_THAT(std::string(refused.message()), HasSubstr(ToHex(prompt.keys[0].view())));
  EXPECT_TRUE(scope.Check(KeyScheme::kExternal, {&prompt.keys[1], 1}).ok());
}

TEST_F(PublicScopeTest, WithoutAListNothingIsPublicWhereCallersAreToldApart) {
  const PublicScope scope(nullptr, &node_->store());
  Put(MakePrompt(1, 2));  // As an earlier run of the node left it on disk.
  const absl::Status refused = scope.Check(KeyScheme::kCairn, MakePrompt(1, 2).keys);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("started without one"));
  PublicScope first_look(nullptr, &node_->store());
  EXPECT_TRUE(first_look.Poll().ok());
  EXPECT_EQ(first_look.removed_blocks(), 2u);
  EXPECT_EQ(Present(MakePrompt(1, 2)), 0u);
}

TEST_F(PublicScopeTest, ANodeDoesNotStartWithABadList) {
  WriteList("not a key");
  NodeConfig config = SmallConfig();
  config.public_prefix_file = path_;
  EXPECT_THAT(std::string(Node::Start(config).status().message()), HasSubstr(path_));
  config.public_prefix_file = "/nowhere/prefixes";
  EXPECT_THAT(std::string(Node::Start(config).status().message()), HasSubstr("/nowhere/prefixes"));
}

}  // namespace
}  // namespace cairn::node
