#include "common/security/server_security_flags.h"

#include <string>

#include "absl/flags/flag.h"

ABSL_FLAG(bool, insecure, false, "Serve plain text; loopback only.");
ABSL_FLAG(
    bool, insecure_anywhere, false,
    "Insist on plain text on addresses that others reach: gRPC with --insecure, and /metrics.");
ABSL_FLAG(std::string, tls_cert, "",
          "Own certificate, PEM, with those between it and the CA; re-read when it changes.");
ABSL_FLAG(std::string, tls_key, "", "Private key of --tls-cert, PEM, without a password.");
ABSL_FLAG(std::string, tls_ca, "",
          "CA of client certificates, PEM; with it every client must have one.");
ABSL_FLAG(bool, tls_client_optional, false,
          "Clients without a certificate may prove who they are by a token.");
ABSL_FLAG(std::string, token_file, "",
          "Bearer tokens that are good, a line each: name and SHA-256 in hex; re-read.");
ABSL_FLAG(std::string, access_file, "",
          "Who may call, a line each: identity, roles, tenants; re-read. Required with "
          "certificates or tokens.");

namespace cairn {

ServerSecurityConfig ServerSecurityFromFlags() {
  ServerSecurityConfig config;
  config.insecure = absl::GetFlag(FLAGS_insecure);
  config.insecure_anywhere = absl::GetFlag(FLAGS_insecure_anywhere);
  config.tls.cert = absl::GetFlag(FLAGS_tls_cert);
  config.tls.key = absl::GetFlag(FLAGS_tls_key);
  config.tls.ca = absl::GetFlag(FLAGS_tls_ca);
  config.tls_client_optional = absl::GetFlag(FLAGS_tls_client_optional);
  config.token_file = absl::GetFlag(FLAGS_token_file);
  config.access_file = absl::GetFlag(FLAGS_access_file);
  return config;
}

}  // namespace cairn
