// ClientSecurity: what a client needs to prove who it is, and to know whom it talks to.
//
// Open reads everything and starts the thread that re-reads the token and checks certificates. Owns
// all of it; outlives the clients that use it.
#pragma once

#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/security/call_metadata.h"
#include "common/security/file_watch.h"
#include "common/security/tls_files.h"
#include "common/security/watched_file.h"

namespace cairn {

struct ClientSecurityConfig {
  TlsFiles tls;  // Without a CA: plain text.
  std::string token_file;
  // Which of its tenants the client acts for; empty: its only one.
  std::string tenant;

  // INVALID_ARGUMENT naming the flag: `prefix` and tls-ca, tls-cert, tls-key, token-file.
  absl::Status Check(absl::string_view prefix) const;
};

class ClientSecurity {
 public:
  // As Check. `log` gets lines about files that cannot be re-read; may be null.
  static absl::StatusOr<std::unique_ptr<ClientSecurity>> Open(const ClientSecurityConfig& config,
                                                              absl::string_view prefix,
                                                              FileWatch::Log log);

  // Null for plain text. (gRPC shares credentials.)
  const std::shared_ptr<grpc::ChannelCredentials>& credentials() const { return credentials_; }
  const CallMetadata* metadata() const { return metadata_.get(); }
  // The same on behalf of another tenant, for a client that acts for several.
  CallMetadata MetadataFor(std::string tenant) const {
    return CallMetadata(token_.get(), std::move(tenant));
  }
  // Of the files `prefix` and "token" or "tls"; null where there are none.
  const FileWatch* files() const { return watch_.get(); }

 private:
  ClientSecurity() = default;

  std::shared_ptr<grpc::ChannelCredentials> credentials_;
  std::unique_ptr<WatchedFile<std::string>> token_;
  std::unique_ptr<CallMetadata> metadata_;
  std::unique_ptr<FileWatch> watch_;
};

}  // namespace cairn
