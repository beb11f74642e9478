// ServerSecurity: what makes a server know who calls: its TLS, its tokens, its access file.
//
// Open reads everything and starts the thread that re-reads; a program whose files are wrong does
// not start. Owns all of it; outlives the server and everything that resolves callers.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/rpc/caller_resolver.h"
#include "common/security/access_table.h"
#include "common/security/file_watch.h"
#include "common/security/tls_files.h"
#include "common/security/token_table.h"
#include "common/security/watched_file.h"
#include "common/server/config_errors.h"

namespace cairn {

// How often the token and the access file are looked at.
inline constexpr absl::Duration kSecurityPollInterval = absl::Seconds(1);

// As the flags of node and router say it.
struct ServerSecurityConfig {
  bool insecure = false;           // Plain text, on loopback.
  bool insecure_anywhere = false;  // Plain text on addresses that others reach, too.
  TlsFiles tls;                    // --tls-cert, --tls-key, --tls-ca.
  bool tls_client_optional = false;
  std::string token_file;
  std::string access_file;

  bool has_tls() const { return !tls.cert.empty(); }
  // Whether callers prove who they are.
  bool knows_callers() const { return has_tls() || !token_file.empty() || !access_file.empty(); }
  // What does not go together, and files that are wrong.
  void Check(ConfigErrors& errors) const;
  // The HTTP library of /metrics knows no TLS that can be relied on.
  void CheckMetricsAddress(absl::string_view flag, const std::string& address,
                           ConfigErrors& errors) const;
};

class ServerSecurity {
 public:
  // REQUIRES: Check found nothing. Not OK when a file changed for the worse since. `log` gets lines
  // about files that cannot be re-read; may be null.
  static absl::StatusOr<std::unique_ptr<ServerSecurity>> Open(const ServerSecurityConfig& config,
                                                              FileWatch::Log log);

  const CallerResolver& callers() const { return *callers_; }
  // Null for plain text. (gRPC shares credentials.)
  const std::shared_ptr<grpc::ServerCredentials>& credentials() const { return credentials_; }
  // Of the files "access", "token" and "tls"; null where callers are not told apart.
  const FileWatch* files() const { return watch_.get(); }

 private:
  ServerSecurity() = default;

  std::shared_ptr<grpc::ServerCredentials> credentials_;
  std::unique_ptr<WatchedFile<AccessTable>> access_;
  std::unique_ptr<WatchedFile<TokenTable>> tokens_;
  std::unique_ptr<CallerResolver> callers_;
  std::unique_ptr<FileWatch> watch_;
};

}  // namespace cairn
