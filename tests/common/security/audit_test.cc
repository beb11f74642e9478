// Which calls leave a line, and what may stand in one.
#include "common/security/audit.h"

namespace cairn::testing {
namespace {

TEST(Audit, WhatRemovesLeavesALine) {
  for (const char* method :
       {"CacheNode/RetireNamespace", "CacheNode/ClearScope", "CacheNode/Delete"}) {
    EXPECT_TRUE(IsAudited(method)) << method;
  }
  EXPECT_FALSE(IsAudited("CacheNode/Lookup"));
  EXPECT_FALSE(IsAudited("CacheNode/NoSuchMethod"));
}

TEST(Audit, SaysWhoWhatAndHowItEndedAndNoMore) {
  Caller caller{.id = "cn:op\nforged: line", .tenant = "acme"};
  const std::string fingerprint(32, '\xab');
  EXPECT_EQ(AuditLine("CacheNode/Delete", caller, fingerprint, absl::OkStatus()),
            "audit: CacheNode/Delete by 'cn:op?forged: line' for the tenant 'acme', namespace "
            "abababababab: OK");
  const absl::Status refused = absl::UnauthenticatedError("the token hunter2 is bad");
  EXPECT_EQ(AuditLine("CacheNode/Delete", refused, "", refused),
            "audit: CacheNode/Delete by nobody who may, namespace : UNAUTHENTICATED");
}

}  // namespace
}  // namespace cairn::testing
