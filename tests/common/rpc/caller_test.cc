// Which tenant a caller's request may stand for.
#include "common/rpc/caller_resolver.h"

namespace cairn::testing {
namespace {

const Caller kAcme{.id = "worker-1", .tenant = "acme", .admin = false};

TEST(Caller, EmptyTenantIsTheCallersOwn) {
  EXPECT_EQ(*TenantFor(kAcme, "", TenantUse::kWrite), "acme");
  EXPECT_EQ(*TenantFor(kAcme, "acme", TenantUse::kWrite), "acme");
}

TEST(Caller, PublicIsReadByAllAndWrittenByItsOwn) {
  EXPECT_EQ(*TenantFor(kAcme, "public", TenantUse::kRead), "public");
  EXPECT_EQ(TenantFor(kAcme, "public", TenantUse::kWrite).status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST(Caller, AnotherTenantIsDeniedToAdminsToo) {
  Caller admin = kAcme;
  admin.admin = true;
  const absl::Status status = TenantFor(admin, "globex", TenantUse::kRead).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("globex"));
}

TEST(InsecureCallerResolver, EveryoneIsAnAdminOfPublic) {
  const InsecureCallerResolver resolver;
  const grpc::CallbackServerContext context;
  const auto caller = resolver.Resolve(context);
  ASSERT_TRUE(caller.ok());
  EXPECT_EQ(caller->tenant, "public");
  EXPECT_TRUE(caller->admin);
  EXPECT_FALSE(caller->id.empty());
}

}  // namespace
}  // namespace cairn::testing
