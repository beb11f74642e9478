#include "common/security/tls_credentials.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include "common/base/check.h"

namespace cairn {
namespace {

using grpc::experimental::FileWatcherCertificateProvider;

// Shared: gRPC's interface takes it so.
std::shared_ptr<FileWatcherCertificateProvider> Watch(const TlsFiles& files) {
  return std::make_shared<FileWatcherCertificateProvider>(files.key, files.cert, files.ca,
                                                          kTlsRefreshSeconds);
}

}  // namespace

std::shared_ptr<grpc::ServerCredentials> MakeTlsServerCredentials(const TlsFiles& files,
                                                                  bool client_optional) {
  CAIRN_CHECK(!files.cert.empty() && !files.key.empty());
  // One object for each credentials: they take over what it holds.
  grpc::experimental::TlsServerCredentialsOptions options(Watch(files));
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  if (!files.ca.empty()) {
    options.watch_root_certs();
    // Never one of those that do not verify: what they let through names whoever it likes.
    options.set_cert_request_type(client_optional
                                      ? GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY
                                      : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return grpc::experimental::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> MakeTlsChannelCredentials(const TlsFiles& files) {
  CAIRN_CHECK(!files.ca.empty());
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(Watch(files));
  options.watch_root_certs();
  if (!files.cert.empty()) options.watch_identity_key_cert_pairs();
  return grpc::experimental::TlsCredentials(options);
}

}  // namespace cairn
