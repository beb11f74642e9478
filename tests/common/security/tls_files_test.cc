// Files made by a test authority, and broken one way at a time; and which flags go together.
#include "common/security/tls_files.h"

#include <filesystem>

#include "common/security/client_security.h"
#include "common/security/server_security.h"
#include "tests/testing/child_process.h"
#include "tests/testing/test_certificates.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TlsFilesTest : public ::testing::Test {
 protected:
  TlsFilesTest() : folder_(MakeTempFolder()), authority_("the CA") {
    const IssuedCertificate issued = authority_.Issue({.common_name = "node", .uri = ""});
    good_ = {.cert = Write("cert", issued.certificate),
             .key = Write("key", issued.key),
             .ca = Write("ca", authority_.certificate())};
    access_ = Write("access", "cn:node worker acme\n");
  }
  ~TlsFilesTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = absl::StrCat(folder_, "/", name);
    ReplaceFile(path, text);
    return path;
  }
  static std::string Why(const TlsFiles& files) {
    return std::string(CheckTlsFiles(files, "tls-").message());
  }
  static std::string Why(const ServerSecurityConfig& config) {
    ConfigErrors errors;
    config.Check(errors);
    return std::string(errors.ToStatus().message());
  }

  const std::string folder_;
  TestAuthority authority_;
  TlsFiles good_;
  std::string access_;
};

TEST_F(TlsFilesTest, TakesGoodOnesAndNamesWhatIsWrong) {
  EXPECT_EQ(Why(good_), "");
  TlsFiles files = good_;
  files.key = "";
  EXPECT_THAT(Why(files), AllOf(HasSubstr("--tls-cert="), HasSubstr("give --tls-key")));
  files.key = Write("other-key", authority_.Issue({.common_name = "x", .uri = ""}).key);
  EXPECT_THAT(Why(files), AllOf(HasSubstr("--tls-key="), HasSubstr("not the key of the cert")));
  files.key = good_.cert;
  EXPECT_THAT(Why(files), HasSubstr("no private key"));
  files = good_;
  files.cert = Write("nothing", "");
  EXPECT_THAT(Why(files), AllOf(HasSubstr("--tls-cert="), HasSubstr("no certificate")));
  files.cert = absl::StrCat(folder_, "/absent");
  EXPECT_THAT(Why(files), HasSubstr("No such file"));
  const IssuedCertificate old =
      authority_.Issue({.common_name = "node", .uri = "", .valid_seconds = -60});
  files = {.cert = Write("old", old.certificate), .key = Write("old-key", old.key), .ca = ""};
  EXPECT_THAT(Why(files), HasSubstr("no longer valid"));
  files = good_;
  files.ca = good_.key;
  EXPECT_THAT(Why(files), HasSubstr("--tls-ca="));
}

TEST_F(TlsFilesTest, FlagsThatDoNotGoTogetherAreNamed) {
  const std::string tokens = Write("tokens", absl::StrCat("acme ", std::string(64, 'a'), "\n"));
  ServerSecurityConfig config;
  EXPECT_EQ(Why(config), "");
  config.tls = good_;
  EXPECT_THAT(Why(config), HasSubstr("--access-file"));
  config.access_file = access_;
  EXPECT_EQ(Why(config), "");
  config.tls_client_optional = true;
  EXPECT_THAT(Why(config), HasSubstr("--tls-client-optional"));
  config.token_file = tokens;
  EXPECT_EQ(Why(config), "");
  config.insecure = true;
  EXPECT_THAT(Why(config), HasSubstr("--insecure"));
  config = {};
  config.insecure = true;
  config.token_file = tokens;
  EXPECT_THAT(Why(config), HasSubstr("--access-file"));
  config.access_file = access_;
  EXPECT_EQ(Why(config), "") << "tokens on loopback";
  config.token_file = "";
  EXPECT_THAT(Why(config), HasSubstr("proves who calls"));
  config = {};
  config.tls.ca = good_.ca;
  EXPECT_THAT(Why(config), HasSubstr("--tls-ca"));
  config.tls = good_;
  config.tls.ca = "";
  config.access_file = access_;
  EXPECT_THAT(Why(config), HasSubstr("proves who calls"));
  config.token_file = Write("bad-tokens", "acme secret-secret-secret\n");
  EXPECT_THAT(Why(config), AllOf(HasSubstr("--token-file"), HasSubstr("bad-tokens:1:")));
}

TEST_F(TlsFilesTest, AClientNeedsTheServersCa) {
  ClientSecurityConfig config;
  EXPECT_TRUE(config.Check("").ok());
  config.tls = good_;
  EXPECT_TRUE(config.Check("").ok());
  config.tls.ca = "";
  EXPECT_THAT(std::string(config.Check("node-").message()), HasSubstr("--node-tls-ca"));
  config.tls = {};
  config.token_file = Write("token", "too short\n");
  EXPECT_THAT(std::string(config.Check("").message()), HasSubstr("--token-file"));
  config.token_file = Write("token", "a-token-that-is-long-enough\n");
  EXPECT_TRUE(config.Check("").ok());
}

}  // namespace
}  // namespace cairn::testing
