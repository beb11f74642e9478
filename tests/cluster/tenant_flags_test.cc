// Whom cairnctl acts for, as a node that tells callers apart sees it: each flag is either what
// counts or refused, and never passed over.
#include <sstream>

#include "absl/strings/str_cat.h"
#include "client/ctl/command.h"
#include "tests/cluster/secure_fixture.h"

namespace cairn::testing {
namespace {

using ::testing::HasSubstr;

class TenantFlagsTest : public SecureTest {
 protected:
  TenantFlagsTest() {
    WriteAccess(
        "spiffe://cairn.test/acme    worker  acme\n"
        "spiffe://cairn.test/several worker  acme,public\n");
    Certify("acme", &authority(), authority().certificate());
    Certify("several", &authority(), authority().certificate());
  }
  void SetUp() override {
    // Of the prompt that commands speak of where nothing is said.
    ReplaceFile(Path("prefixes"), Run({"keys", "--tokens", "0..63", "--public"}));
    ASSERT_NO_FATAL_FAILURE(StartNode({absl::StrCat("--public-prefix-file=", Path("prefixes"))}));
  }

  // Output and errors together.
  static std::string Run(const std::vector<std::string>& arguments) {
    std::istringstream in;
    std::ostringstream out;
    ctl::RunCairnctl(arguments, {&in, &out}, &out);
    return out.str();
  }
  std::string RunAs(const std::string& name, std::vector<std::string> arguments) {
    const TlsFiles files = FilesOf(name);
    for (const std::string& flag :
         {absl::StrCat("--node=", node().address()), absl::StrCat("--tls-ca=", files.ca),
          absl::StrCat("--tls-cert=", files.cert), absl::StrCat("--tls-key=", files.key)}) {
      arguments.push_back(flag);
    }
    return Run(arguments);
  }
};

TEST_F(TenantFlagsTest, APublisherOfSeveralTenantsWritesPublicAndReadsItAsEither) {
  EXPECT_THAT(RunAs("several", {"register"}), HasSubstr("acts for"));
  EXPECT_THAT(RunAs("several", {"register", "--tenant", "public"}), HasSubstr("tenant: public\n"));
  EXPECT_THAT(RunAs("several", {"register", "--as", "acme"}), HasSubstr("tenant: acme\n"));
  EXPECT_THAT(RunAs("several", {"put", "--generate", "--tenant", "public"}),
              HasSubstr("blocks_written: 4\n"));
  // Reading, the scope says what, and --as for whom.
  EXPECT_THAT(RunAs("several", {"lookup", "--tenant", "public"}), HasSubstr("acts for"));
  for (const char* as : {"acme", "public"}) {
    EXPECT_THAT(RunAs("several", {"lookup", "--tenant", "public", "--as", as}),
                HasSubstr("blocks_present: 4\n"));
    EXPECT_THAT(RunAs("several", {"get", "--verify-generated", "--tenant", "public", "--as", as}),
                HasSubstr("blocks_usable: 4\n"));
  }
  EXPECT_THAT(RunAs("several", {"lookup", "--tenant", "acme"}), HasSubstr("blocks_present: 0\n"));
  EXPECT_THAT(RunAs("several", {"clear", "--tenant", "public"}), HasSubstr("blocks_removed: 4\n"));
}

TEST_F(TenantFlagsTest, WhoHasOneTenantReadsPublicAndIsToldThatItDoesNotWriteIt) {
  EXPECT_THAT(RunAs("several", {"register", "--tenant", "public"}), HasSubstr("tenant: public\n"));
  EXPECT_THAT(RunAs("several", {"put", "--generate", "--tenant", "public"}),
              HasSubstr("blocks_written: 4\n"));
  EXPECT_THAT(RunAs("acme", {"lookup", "--tenant", "public"}), HasSubstr("blocks_present: 4\n"));
  EXPECT_THAT(RunAs("acme", {"lookup", "--tenant", "acme"}), HasSubstr("blocks_present: 0\n"));
  for (const char* command : {"register", "put", "clear"}) {
    std::vector<std::string> arguments = {command, "--tenant", "public"};
    if (command == std::string("put")) arguments.push_back("--generate");
    EXPECT_THAT(RunAs("acme", arguments), HasSubstr("tenant \"public\"")) << command;
  }
  EXPECT_THAT(RunAs("acme", {"lookup", "--tenant", "public", "--as", "globex"}),
              HasSubstr("tenant \"globex\""));
}

}  // namespace
}  // namespace cairn::testing
