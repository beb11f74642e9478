// Which tenant a caller's request may stand for.
#include "common/rpc/caller_resolver.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const Caller kAcme{.id = "worker-1", .tenant = "acme", .roles = {Role::kWorker}};

TEST(Caller, EmptyTenantIsTheCallersOwn) {
  EXPECT_EQ(*TenantFor(kAcme, "", TenantUse::kWrite), "acme");
  EXPECT_EQ(*TenantFor(kAcme, "acme", TenantUse::kWrite), "acme");
}

TEST(Caller, PublicIsReadByAllAndWrittenByItsOwn) {
  EXPECT_EQ(*TenantFor(kAcme, "public", TenantUse::kRead), "public");
  EXPECT_EQ(TenantFor(kAcme, "public", TenantUse::kWrite).status().code(),
            absl::StatusCode::kPermissionDenied);
  Caller publisher = kAcme;
  publisher.tenants = {"public"};
  EXPECT_EQ(*TenantFor(publisher, "public", TenantUse::kWrite), "public");
}

TEST(Caller, AnotherTenantIsDeniedToAdminsTooNamingBoth) {
  Caller admin = kAcme;
  admin.roles = RoleSet::All();
  const absl::Status status = TenantFor(admin, "globex", TenantUse::kRead).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("globex"), HasSubstr("acme")));
}

TEST(Caller, OfSeveralTenantsOneIsNamed) {
  Caller several{.id = "worker-2", .tenant = "", .roles = {Role::kWorker}};
  several.tenants = {"acme", "globex"};
  EXPECT_EQ(*TenantFor(several, "globex", TenantUse::kWrite), "globex");
  const absl::Status status = TenantFor(several, "", TenantUse::kRead).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("acme"), HasSubstr("globex")));
  several.tenants = {};
  several.all_tenants = true;
  EXPECT_EQ(*TenantFor(several, "initech", TenantUse::kWrite), "initech");
  EXPECT_FALSE(TenantFor(several, "", TenantUse::kRead).ok());
}

TEST(Caller, SeesItsOwnAndPublicAndRoutersSeeAll) {
  EXPECT_TRUE(kAcme.MaySee("acme"));
  EXPECT_TRUE(kAcme.MaySee("public"));
  EXPECT_FALSE(kAcme.MaySee("globex"));
  const Caller router{.id = "router", .tenant = "", .roles = {Role::kRouter}};
  EXPECT_TRUE(router.MaySee("globex"));
  EXPECT_FALSE(router.MayActFor("globex"));
  EXPECT_FALSE(router.MayActFor(""));
}

TEST(InsecureCallerResolver, EveryoneHasEveryRoleInPublic) {
  const InsecureCallerResolver resolver;
  const grpc::CallbackServerContext context;
  const auto caller = resolver.Resolve(context, "CacheNode/RetireNamespace");
  ASSERT_TRUE(caller.ok());
  EXPECT_EQ(caller->tenant, "public");
  EXPECT_TRUE(caller->Is(Role::kAdmin));
  EXPECT_FALSE(caller->id.empty());
}

}  // namespace
}  // namespace cairn::testing
