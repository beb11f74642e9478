// Which calls leave a line, what may stand in one, and how many those that are refused leave.
#include "common/security/audit.h"

#include "common/security/audit_trail.h"
#include "tests/testing/fake_clock.h"

namespace cairn::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(Audit, WhatRemovesOrChangesLeavesALine) {
  for (const char* method :
       {"CacheNode/RetireNamespace", "CacheNode/ClearScope", "CacheNode/Delete",
        "CacheNode/PurgeWriter", "CacheNode/RegisterNamespace", "CacheNode/PinBlocks"}) {
    EXPECT_TRUE(IsAudited(method)) << method;
  }
  EXPECT_FALSE(IsAudited("CacheNode/Lookup"));
  EXPECT_FALSE(IsAudited("CacheNode/NoSuchMethod"));
}

TEST(Audit, SaysWhoWhatAndHowItEndedAndNoMore) {
  Caller caller{.id = "cn:op\nforged: line", .tenant = "acme"};
  const std::string fingerprint(32, '\xab');
  EXPECT_EQ(AuditLine("CacheNode/Delete", caller, AboutNamespace(fingerprint), absl::OkStatus()),
            "audit: CacheNode/Delete by 'cn:op?forged: line' for the tenant 'acme', namespace "
            "abababababab: OK");
  const absl::Status refused = absl::UnauthenticatedError("the token hunter2 is bad");
  EXPECT_EQ(AuditLine("CacheNode/Delete", refused, AboutNamespace(""), refused),
            "audit: CacheNode/Delete by nobody who may, namespace : UNAUTHENTICATED");
}

TEST(Audit, APurgeSaysWhoseBlocksSinceWhen) {
  EXPECT_EQ(AboutWriter("token:a\nb", 1'700'000'000'123),
            "writer 'token:a?b' since 2023-11-14T22:13:20.123+00:00");
  EXPECT_EQ(AboutWriter("cn:w", 0), "writer 'cn:w' since ever");
}

TEST(Audit, WhoIsRefusedIsNamedWhenItProvedWhoItIs) {
  const absl::Status refused = WithIdentity(absl::PermissionDeniedError("no"), "cn:mallory");
  EXPECT_EQ(AuditLine("CacheNode/Delete", refused, "namespace ab", refused),
            "audit: CacheNode/Delete by 'cn:mallory', who may not, namespace ab: "
            "PERMISSION_DENIED");
}

class AuditTrailTest : public ::testing::Test {
 protected:
  void Refuse(int times) {
    const absl::Status refused = WithIdentity(absl::PermissionDeniedError("no"), "cn:mallory");
    for (int i = 0; i < times; ++i) trail_.Add("CacheNode/Delete", refused, "it", refused);
  }

  FakeClock clock_;
  std::vector<std::string> lines_;
  AuditTrail trail_{[this](absl::string_view line) { lines_.emplace_back(line); }, &clock_};
};

TEST_F(AuditTrailTest, RefusedCallersDoNotFillTheLogAndWhatIsLeftOutIsSaid) {
  Refuse(1000);
  EXPECT_THAT(lines_, SizeIs(100));
  EXPECT_EQ(trail_.left_out(), 900u);
  clock_.Advance(absl::Seconds(1));
  Refuse(1);
  ASSERT_THAT(lines_, SizeIs(102));
  EXPECT_EQ(lines_[100], "audit: 900 lines of refused callers were left out");
  EXPECT_THAT(lines_[101], HasSubstr("mallory"));
}

TEST_F(AuditTrailTest, WhoMayIsNeverLeftOut) {
  Refuse(1000);
  lines_.clear();
  const Caller admin{.id = "cn:admin", .tenant = "acme"};
  for (int i = 0; i < 500; ++i) trail_.Add("CacheNode/Delete", admin, "it", absl::OkStatus());
  trail_.Add("CacheNode/Lookup", admin, "it", absl::OkStatus());
  EXPECT_THAT(lines_, SizeIs(500));
}

}  // namespace
}  // namespace cairn::testing
