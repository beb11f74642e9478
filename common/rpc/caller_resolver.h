// CallerResolver: turns what gRPC knows of a call into a Caller. Thread-safe.
#pragma once

#include <grpcpp/server_context.h>

#include "absl/status/statusor.h"
#include "common/rpc/caller_identity.h"

namespace cairn {

class CallerResolver {
 public:
  virtual ~CallerResolver() = default;

  // UNAUTHENTICATED when the call proves no identity. Must not block: it runs on gRPC's threads.
  virtual absl::StatusOr<Caller> Resolve(const grpc::ServerContextBase& context) const = 0;
};

// For servers that were told to be insecure, on loopback: everyone is one admin of tenant `public`.
class InsecureCallerResolver final : public CallerResolver {
 public:
  absl::StatusOr<Caller> Resolve(const grpc::ServerContextBase& context) const override;
};

}  // namespace cairn
