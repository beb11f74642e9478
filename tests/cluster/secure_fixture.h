// SecureTest: a real node and router that serve mutual TLS only, and parties that call them, each
// with a certificate or a token of its own.
//
// An access file says who they are. Files are exchanged by rename, and the programs re-read them by
// themselves. Prints the programs' logs when a test failed.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "client/cpp/router_client.h"
#include "common/security/client_security.h"
#include "gmock/gmock.h"
#include "tests/cluster/test_client.h"
#include "tests/testing/server_process.h"
#include "tests/testing/test_certificates.h"

namespace cairn::testing {

class SecureTest : public ::testing::Test {
 protected:
  // Who calls, and with what; made once for each name.
  struct Party {
    std::unique_ptr<ClientSecurity> security;
    std::unique_ptr<SystemClientParts> parts;
    std::unique_ptr<TestClient> node;
    std::unique_ptr<RouterClient> router;  // Null before there is one.
  };

  SecureTest();
  ~SecureTest() override;

  // A line of the access file: identities of certificates are spiffe://cairn.test/NAME.
  void WriteAccess(const std::string& lines) { ReplaceFile(Path("access"), lines); }
  // "" revokes all.
  void WriteTokens(const std::string& lines) { ReplaceFile(Path("tokens"), lines); }
  std::string Path(const std::string& name) const;
  static std::string TokenLine(const std::string& name, const std::string& token);

  // Beside the flags that make it serve mutual TLS.
  void StartNode(const std::vector<std::string>& flags = {});
  // kill -9, and again at the same address.
  void RestartNode();
  // Follows the node.
  void StartRouter();
  ServerProcess& node() { return *node_; }
  ServerProcess& router() { return *router_; }

  // With a certificate of that name; `tenant` goes into the metadata.
  Party& WithCertificate(const std::string& name, const std::string& tenant = "");
  // Without one, with this token; the file stays at Path(name.token).
  Party& WithToken(const std::string& name, const std::string& token);
  // Certificate, key and CA of that name, of this authority, in one folder that is exchanged at
  // once.
  void Certify(const std::string& name, TestAuthority* authority, const std::string& ca);

  TestAuthority& authority() { return authority_; }
  // Where Certify puts them.
  TlsFiles FilesOf(const std::string& name) const;
  // Asks until it is so, at most half a minute.
  static bool Await(absl::FunctionRef<bool()> condition);

 private:
  std::vector<std::string> ServerFlags(const std::string& name) const;
  absl::StatusOr<std::unique_ptr<ServerProcess>> StartProcess(const std::string& program,
                                                              std::vector<std::string> flags);
  Party& AddParty(const std::string& name, const ClientSecurityConfig& config);

  const std::string folder_;
  TestAuthority authority_;
  std::unique_ptr<ClientSecurity> asker_;
  std::vector<std::string> node_flags_;
  std::unique_ptr<ServerProcess> node_;
  std::unique_ptr<ServerProcess> router_;
  std::map<std::string, Party> parties_;
  int issued_ = 0;
};

}  // namespace cairn::testing
