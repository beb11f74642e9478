#include "tests/cluster/secure_fixture.h"

#include <filesystem>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/check.h"
#include "common/base/hex.h"
#include "common/identity/sha256.h"
#include "common/server/wake_event.h"

namespace cairn::testing {
namespace {

constexpr absl::Duration kAwaitMax = absl::Seconds(30);
constexpr absl::Duration kAskInterval = absl::Milliseconds(20);

}  // namespace

SecureTest::SecureTest() : folder_(MakeTempFolder()), authority_("the first CA") {
  for (const char* name : {"node", "router", "asker"}) {
    Certify(name, &authority_, authority_.certificate());
  }
  WriteAccess("");
  WriteTokens("");
  ClientSecurityConfig config;
  config.tls = FilesOf("asker");
  asker_ = *ClientSecurity::Open(config, "", nullptr);
}

SecureTest::~SecureTest() {
  if (HasFailure() && node_ != nullptr) std::cerr << "log of the node:\n" << node_->Log();
  if (HasFailure() && router_ != nullptr) std::cerr << "log of the router:\n" << router_->Log();
  parties_.clear();
  asker_.reset();
  node_.reset();
  router_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string SecureTest::Path(const std::string& name) const {
  return absl::StrCat(folder_, "/", name);
}

std::string SecureTest::TokenLine(const std::string& name, const std::string& token) {
  const Sha256Digest digest = Sha256(token);
  return absl::StrCat(name, " ",
                      ToHex({reinterpret_cast<const char*>(digest.data()), digest.size()}), "\n");
}

// A link to a folder is exchanged, as Kubernetes does: no reader sees a certificate and a key that
// do not fit.
void SecureTest::Certify(const std::string& name, TestAuthority* authority, const std::string& ca) {
  const IssuedCertificate issued =
      authority->Issue({.common_name = name, .uri = absl::StrCat("spiffe://cairn.test/", name)});
  const std::string target = Path(absl::StrCat(name, ".", ++issued_));
  std::filesystem::create_directory(target);
  ReplaceFile(absl::StrCat(target, "/cert"), issued.certificate);
  ReplaceFile(absl::StrCat(target, "/key"), issued.key);
  ReplaceFile(absl::StrCat(target, "/ca"), ca);
  const std::string next = absl::StrCat(target, ".link");
  std::filesystem::create_directory_symlink(target, next);
  std::filesystem::rename(next, Path(name));
}

TlsFiles SecureTest::FilesOf(const std::string& name) const {
  const std::string folder = Path(name);
  return {.cert = absl::StrCat(folder, "/cert"),
          .key = absl::StrCat(folder, "/key"),
          .ca = absl::StrCat(folder, "/ca")};
}

std::vector<std::string> SecureTest::ServerFlags(const std::string& name) const {
  const TlsFiles files = FilesOf(name);
  return {"--insecure=false",
          absl::StrCat("--tls-cert=", files.cert),
          absl::StrCat("--tls-key=", files.key),
          absl::StrCat("--tls-ca=", files.ca),
          "--tls-client-optional",
          absl::StrCat("--token-file=", Path("tokens")),
          absl::StrCat("--access-file=", Path("access"))};
}

absl::StatusOr<std::unique_ptr<ServerProcess>> SecureTest::StartProcess(
    const std::string& program, std::vector<std::string> flags) {
  return ServerProcess::Start({.program = absl::StrCat(CAIRN_BIN_DIR, "/", program),
                               .flags = std::move(flags),
                               .credentials = asker_->credentials()});
}

void SecureTest::StartNode(const std::vector<std::string>& flags) {
  node_flags_ = ServerFlags("node");
  for (const char* flag : {"--node-id=node", "--worker-address=worker", "--host-memory=16MiB",
                           "--memory-limit=1GiB", "--heartbeat-ms=50"}) {
    node_flags_.push_back(flag);
  }
  node_flags_.insert(node_flags_.end(), flags.begin(), flags.end());
  absl::StatusOr<std::unique_ptr<ServerProcess>> node = StartProcess("cairn-node", node_flags_);
  ASSERT_TRUE(node.ok()) << node.status();
  node_ = *std::move(node);
  node_flags_.push_back(absl::StrCat("--listen=", node_->address()));
}

void SecureTest::RestartNode() {
  node_->Kill9();
  node_ = nullptr;
  absl::StatusOr<std::unique_ptr<ServerProcess>> node = StartProcess("cairn-node", node_flags_);
  ASSERT_TRUE(node.ok()) << node.status();
  node_ = *std::move(node);
}

void SecureTest::StartRouter() {
  std::vector<std::string> flags = ServerFlags("router");
  const TlsFiles files = FilesOf("router");
  flags.push_back(absl::StrCat("--nodes=", node_->address()));
  flags.push_back(absl::StrCat("--node-tls-cert=", files.cert));
  flags.push_back(absl::StrCat("--node-tls-key=", files.key));
  flags.push_back(absl::StrCat("--node-tls-ca=", files.ca));
  absl::StatusOr<std::unique_ptr<ServerProcess>> router =
      StartProcess("cairn-router", std::move(flags));
  ASSERT_TRUE(router.ok()) << router.status();
  router_ = *std::move(router);
}

SecureTest::Party& SecureTest::AddParty(const std::string& name,
                                        const ClientSecurityConfig& config) {
  const auto known = parties_.find(name);
  if (known != parties_.end()) return known->second;
  Party& party = parties_[name];
  absl::StatusOr<std::unique_ptr<ClientSecurity>> security =
      ClientSecurity::Open(config, "", nullptr);
  CAIRN_CHECK_OK(security.status());
  party.security = *std::move(security);
  party.parts = std::make_unique<SystemClientParts>();
  party.node = std::make_unique<TestClient>(node_->address(), party.security.get());
  if (router_ == nullptr) return party;
  RouterClientOptions options;
  options.target = router_->address();
  options.credentials = party.security->credentials();
  options.metadata = party.security->metadata();
  party.router = std::make_unique<RouterClient>(options, party.parts->parts());
  return party;
}

SecureTest::Party& SecureTest::WithCertificate(const std::string& name, const std::string& tenant) {
  ClientSecurityConfig config;
  if (!std::filesystem::exists(Path(name))) Certify(name, &authority_, authority_.certificate());
  config.tls = FilesOf(name);
  config.tenant = tenant;
  return AddParty(absl::StrCat(name, " ", tenant), config);
}

SecureTest::Party& SecureTest::WithToken(const std::string& name, const std::string& token) {
  ClientSecurityConfig config;
  config.tls.ca = FilesOf("asker").ca;
  config.token_file = Path(absl::StrCat(name, ".token"));
  ReplaceFile(config.token_file, token);
  return AddParty(absl::StrCat("token ", name), config);
}

bool SecureTest::Await(absl::FunctionRef<bool()> condition) {
  const WakeEvent never;
  const absl::Time deadline = absl::Now() + kAwaitMax;
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    never.WaitFor(kAskInterval);
  }
  return true;
}

}  // namespace cairn::testing
