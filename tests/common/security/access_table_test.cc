// Files as an operator writes them, good and bad: each bad line is refused with file, line and what
// to write, and none is passed over.
#include "common/security/access_table.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(AccessTable, TellsRolesAndTenantsOfEachIdentity) {
  const absl::StatusOr<AccessTable> table = AccessTable::Parse(
      "# who may call\n"
      "spiffe://fleet/ns/a/sa/worker   worker          acme,globex  # two\n"
      "\n"
      "\tcn:router-1\trouter,metrics\t-\r\n"
      "token:ops admin,worker *",
      "access");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->size(), 3u);
  const AccessEntry* worker = table->Find("spiffe://fleet/ns/a/sa/worker");
  ASSERT_NE(worker, nullptr);
  EXPECT_EQ(worker->roles, RoleSet({Role::kWorker}));
  EXPECT_THAT(worker->tenants, ElementsAre("acme", "globex"));
  EXPECT_FALSE(worker->all_tenants);
  const AccessEntry* router = table->Find("cn:router-1");
  ASSERT_NE(router, nullptr);
  EXPECT_EQ(router->roles, RoleSet({Role::kRouter, Role::kMetrics}));
  EXPECT_TRUE(router->tenants.empty());
  EXPECT_FALSE(router->all_tenants);
  EXPECT_TRUE(table->Find("token:ops")->all_tenants);
  EXPECT_EQ(table->Find("cn:ops"), nullptr);
  EXPECT_EQ(table->Find("spiffe://fleet/ns/a/sa/worker2"), nullptr);
}

TEST(AccessTable, RefusesWhatMeansNothing) {
  const auto why = [](const std::string& line) {
    const absl::Status status =
        AccessTable::Parse(absl::StrCat("cn:a worker acme\n", line, "\n"), "access").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << line;
    EXPECT_THAT(std::string(status.message()), HasSubstr("access:2: ")) << line;
    return std::string(status.message());
  };
  EXPECT_THAT(why("cn:b worker"), AllOf(HasSubstr("2 fields"), HasSubstr("identity role")));
  EXPECT_THAT(why("cn:b worker acme globex"), HasSubstr("4 fields"));
  EXPECT_THAT(why("b worker acme"), AllOf(HasSubstr("'b' is no identity"), HasSubstr("cn:NAME")));
  EXPECT_THAT(why("cn: worker acme"), HasSubstr("no identity"));
  EXPECT_THAT(why("spiffe://fleet worker acme"), HasSubstr("no SPIFFE id"));
  EXPECT_THAT(why("spiffe:///a worker acme"), HasSubstr("no SPIFFE id"));
  EXPECT_THAT(why("cn:b work acme"), AllOf(HasSubstr("'work' is no role"), HasSubstr("metrics")));
  EXPECT_THAT(why("cn:b worker,,admin acme"), HasSubstr("'' is no role"));
  EXPECT_THAT(why("cn:b worker,worker acme"), HasSubstr("comes twice"));
  EXPECT_THAT(why("cn:b worker acme,"), HasSubstr("no tenant"));
  EXPECT_THAT(why("cn:b worker acme,*"), HasSubstr("only * for all"));
  EXPECT_THAT(why("cn:b worker acme,acme"), HasSubstr("comes twice"));
  EXPECT_THAT(why("cn:a admin *"), HasSubstr("comes twice; join"));
  EXPECT_THAT(why(std::string("cn:b worker ac\0me", 17)), HasSubstr("no text has"));
  EXPECT_THAT(why(absl::StrCat("cn:", std::string(300, 'x'), " worker a")), HasSubstr("longer"));
}

TEST(AccessTable, IsBounded) {
  EXPECT_FALSE(AccessTable::Parse(std::string((1 << 20) + 1, '#'), "access").ok());
  std::string many = "cn:a worker t0";
  for (size_t i = 1; i < kTenantsPerEntryMax; ++i) absl::StrAppend(&many, ",t", i);
  EXPECT_TRUE(AccessTable::Parse(many, "access").ok());
  EXPECT_FALSE(AccessTable::Parse(absl::StrCat(many, ",one-more"), "access").ok());
}

}  // namespace
}  // namespace cairn::testing
