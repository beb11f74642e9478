#include "common/security/server_security.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/security/call_gate.h"
#include "common/security/tls_credentials.h"
#include "common/server/listen_address.h"

namespace cairn {
namespace {

template <typename Table>
absl::Status CheckFile(absl::string_view flag, const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  const absl::StatusOr<std::string> text = ReadSecurityFile(path);
  absl::Status status = text.status();
  if (status.ok()) status = Table::Parse(*text, path).status();
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat("--", flag, ": ", status.message()));
}

void CheckTogether(const ServerSecurityConfig& config, ConfigErrors& errors) {
  const auto check = [&errors](bool ok, absl::string_view flag, absl::string_view value,
                               absl::string_view allowed) {
    errors.Check(ok, flag, value, allowed);
  };
  check(!config.insecure || !config.tls.any(), "insecure", "true",
        "left out where --tls-cert, --tls-key or --tls-ca is given");
  check(config.tls.ca.empty() || config.has_tls(), "tls-ca", config.tls.ca,
        "given together with --tls-cert and --tls-key");
  check(!config.tls_client_optional || (!config.tls.ca.empty() && !config.token_file.empty()),
        "tls-client-optional", "true",
        "given together with --tls-ca and --token-file: who has no certificate sends a token");
  check(!config.has_tls() || !config.tls.ca.empty() || !config.token_file.empty(), "tls-cert",
        config.tls.cert,
        "given together with --tls-ca or --token-file: nothing else proves who calls");
  check(!config.knows_callers() || !config.access_file.empty(), "access-file", "",
        "the file that says which identities may call, in which roles, for which tenants");
  check(config.access_file.empty() || config.has_tls() || !config.token_file.empty(), "access-file",
        config.access_file,
        "given together with --tls-ca or --token-file: nothing else proves who calls");
}

}  // namespace

void ServerSecurityConfig::Check(ConfigErrors& errors) const {
  CheckTogether(*this, errors);
  errors.Add(CheckTlsFiles(tls, "tls-"));
  errors.Add(CheckFile<TokenTable>("token-file", token_file));
  errors.Add(CheckFile<AccessTable>("access-file", access_file));
}

void ServerSecurityConfig::CheckMetricsAddress(absl::string_view flag, const std::string& address,
                                               ConfigErrors& errors) const {
  if (address.empty()) return;
  errors.CheckListenAddress(flag, address);
  const absl::StatusOr<ListenAddress> parsed = ListenAddress::Parse(address);
  if (!parsed.ok()) return;
  errors.Check(
      parsed->IsLoopback() || insecure_anywhere, flag, address,
      "on loopback: /metrics is plain text; put a TLS proxy in front of it, or insist with "
      "--insecure-anywhere");
}

absl::StatusOr<std::unique_ptr<ServerSecurity>> ServerSecurity::Open(
    const ServerSecurityConfig& config, FileWatch::Log log) {
  std::unique_ptr<ServerSecurity> security(new ServerSecurity());
  if (config.has_tls()) {
    security->credentials_ = MakeTlsServerCredentials(config.tls, config.tls_client_optional);
  }
  if (!config.knows_callers()) {
    security->callers_ = std::make_unique<InsecureCallerResolver>();
    return security;
  }
  std::vector<FileWatch::File> files;
  absl::StatusOr<std::unique_ptr<WatchedFile<AccessTable>>> access =
      WatchedFile<AccessTable>::Open(config.access_file, AccessTable::Parse, ReadSecurityFile);
  if (!access.ok()) return access.status();
  security->access_ = *std::move(access);
  files.push_back({"access", [file = security->access_.get()] { return file->Poll(); }});
  if (!config.token_file.empty()) {
    absl::StatusOr<std::unique_ptr<WatchedFile<TokenTable>>> tokens =
        WatchedFile<TokenTable>::Open(config.token_file, TokenTable::Parse, ReadSecurityFile);
    if (!tokens.ok()) return tokens.status();
    security->tokens_ = *std::move(tokens);
    files.push_back({"token", [file = security->tokens_.get()] { return file->Poll(); }});
  }
  // gRPC reads these itself, and says nothing when it cannot.
  if (config.has_tls()) {
    files.push_back({"tls", [tls = config.tls] { return CheckTlsFiles(tls, "tls-"); }});
  }
  security->callers_ = std::make_unique<CallGate>(security->access_.get(), security->tokens_.get());
  security->watch_ = std::make_unique<FileWatch>(std::move(files), std::move(log));
  security->watch_->Start(kSecurityPollInterval);
  return security;
}

}  // namespace cairn
