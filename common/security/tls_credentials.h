// TLS for gRPC's servers and channels, from files that are re-read while they serve.
//
// gRPC 1.51 has it under `experimental`. A new certificate, key or CA counts for connections made
// from then on; those that are open stay. gRPC reads the files on a thread of its own, once in
// kTlsRefreshSeconds; what cannot be read leaves what was read before. Between a certificate and a
// key that do not fit, new connections fail until both do. TLS 1.2 and 1.3.
#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "common/security/tls_files.h"

namespace cairn {

inline constexpr unsigned int kTlsRefreshSeconds = 1;

// Client certificates: without a CA none is asked for; with one they are verified against it, and
// required unless `client_optional`. REQUIRES: CheckTlsFiles says OK; a certificate and its key.
// gRPC shares credentials.
std::shared_ptr<grpc::ServerCredentials> MakeTlsServerCredentials(const TlsFiles& files,
                                                                  bool client_optional);

// The server's certificate must come from the CA and be of the name that was connected to. Sends
// the own certificate where there is one. REQUIRES: CheckTlsFiles says OK; a CA.
std::shared_ptr<grpc::ChannelCredentials> MakeTlsChannelCredentials(const TlsFiles& files);

}  // namespace cairn
