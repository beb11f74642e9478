// Holders register, retire and are forgotten; what is known of a namespace follows.
#include "router/index/namespace_directory.h"

#include <gmock/gmock.h>

#include "tests/router/numbered_ids.h"

namespace cairn::router {
namespace {

const Fingerprint kOne = NumberedFingerprint(1), kTwo = NumberedFingerprint(2);

TEST(NamespaceDirectoryTest, KnownWhileAHolderSaysSo) {
  NamespaceDirectory directory(2, 8);
  EXPECT_EQ(directory.BlockTokens(kOne), std::nullopt);
  ASSERT_TRUE(directory.Registered(0, kOne, 16, KeyScheme::kExternal).ok());
  EXPECT_EQ(directory.BlockTokens(kOne), 16u);
  ASSERT_TRUE(directory.RulesOf(kOne).has_value());
  EXPECT_EQ(directory.RulesOf(kOne)->key_scheme, KeyScheme::kExternal);
  EXPECT_EQ(directory.RulesOf(kTwo), std::nullopt);
  directory.Forget(0);
  EXPECT_EQ(directory.BlockTokens(kOne), std::nullopt);
}

TEST(NamespaceDirectoryTest, RetiredAtOneHolderIsKnownByTheOther) {
  NamespaceDirectory directory(2, 8);
  ASSERT_TRUE(directory.Registered(0, kOne, 16).ok());
  ASSERT_TRUE(directory.Registered(1, kOne, 16).ok());
  ASSERT_TRUE(directory.Retired(0, kOne).ok());
  EXPECT_TRUE(directory.RetiredAt(0, kOne));
  EXPECT_FALSE(directory.RetiredAt(1, kOne));
  EXPECT_EQ(directory.BlockTokens(kOne), 16u);
  ASSERT_TRUE(directory.Retired(1, kOne).ok());
  EXPECT_EQ(directory.BlockTokens(kOne), std::nullopt);
  ASSERT_TRUE(directory.Registered(0, kOne, 16).ok());
  EXPECT_FALSE(directory.RetiredAt(0, kOne));
  directory.Forget(1);
  EXPECT_FALSE(directory.RetiredAt(1, kOne));
}

TEST(NamespaceDirectoryTest, OneFingerprintHasOneBlockSizeAndScheme) {
  NamespaceDirectory directory(2, 8);
  ASSERT_TRUE(directory.Registered(0, kOne, 16).ok());
  EXPECT_EQ(directory.Registered(1, kOne, 32).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(directory.Registered(1, kOne, 16, KeyScheme::kExternal).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(directory.Registered(1, kTwo, 0).code(), absl::StatusCode::kInvalidArgument);
}

TEST(NamespaceDirectoryTest, AtTheBoundForgottenOnesMakeRoom) {
  NamespaceDirectory directory(2, 1);
  ASSERT_TRUE(directory.Registered(0, kOne, 16).ok());
  EXPECT_EQ(directory.Registered(1, kTwo, 16).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(directory.Retired(1, kTwo).code(), absl::StatusCode::kResourceExhausted);
  directory.Forget(0);
  EXPECT_TRUE(directory.Registered(1, kTwo, 16).ok());
}

}  // namespace
}  // namespace cairn::router
