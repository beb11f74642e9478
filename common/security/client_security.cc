#include "common/security/client_security.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/security/server_security.h"
#include "common/security/tls_credentials.h"

namespace cairn {

absl::Status ClientSecurityConfig::Check(absl::string_view prefix) const {
  if (tls.any() && tls.ca.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", prefix, "tls-ca: must name the CA of the servers where --", prefix,
                     "tls-cert or --", prefix, "tls-key is given"));
  }
  if (absl::Status status = CheckTlsFiles(tls, absl::StrCat(prefix, "tls-")); !status.ok()) {
    return status;
  }
  if (token_file.empty()) return absl::OkStatus();
  const absl::StatusOr<std::string> text = ReadSecurityFile(token_file);
  absl::Status status = text.status();
  if (status.ok()) status = CallMetadata::ParseToken(*text, token_file).status();
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat("--", prefix, "token-file: ", status.message()));
}

absl::StatusOr<std::unique_ptr<ClientSecurity>> ClientSecurity::Open(
    const ClientSecurityConfig& config, absl::string_view prefix, FileWatch::Log log) {
  if (absl::Status status = config.Check(prefix); !status.ok()) return status;
  std::unique_ptr<ClientSecurity> security(new ClientSecurity());
  std::vector<FileWatch::File> files;
  if (config.tls.any()) {
    security->credentials_ = MakeTlsChannelCredentials(config.tls);
    // gRPC reads these itself, and says nothing when it cannot.
    files.push_back(
        {absl::StrCat(prefix, "tls"), [tls = config.tls, flags = absl::StrCat(prefix, "tls-")] {
           return CheckTlsFiles(tls, flags);
         }});
  }
  if (!config.token_file.empty()) {
    absl::StatusOr<std::unique_ptr<WatchedFile<std::string>>> token =
        WatchedFile<std::string>::Open(config.token_file, CallMetadata::ParseToken,
                                       ReadSecurityFile);
    if (!token.ok()) return token.status();
    security->token_ = *std::move(token);
    files.push_back(
        {absl::StrCat(prefix, "token"), [file = security->token_.get()] { return file->Poll(); }});
  }
  if (!files.empty()) {
    security->watch_ = std::make_unique<FileWatch>(std::move(files), std::move(log));
    security->watch_->Start(kSecurityPollInterval);
  }
  security->metadata_ = std::make_unique<CallMetadata>(security->token_.get(), config.tenant);
  return security;
}

}  // namespace cairn
