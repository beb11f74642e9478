// CallerResolver: turns what gRPC knows of a call into a Caller. Thread-safe.
#pragma once

#include <grpcpp/server_context.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/rpc/caller_identity.h"

namespace cairn {

class CallerResolver {
 public:
  virtual ~CallerResolver() = default;

  // Who makes this call of `method`, as in "CacheNode/Lookup". UNAUTHENTICATED when the call proves
  // no identity, PERMISSION_DENIED when it may not make it. Must not block: it runs on gRPC's
  // threads.
  virtual absl::StatusOr<Caller> Resolve(const grpc::ServerContextBase& context,
                                         absl::string_view method) const = 0;

  // Rises whenever a call may come to be resolved otherwise than before. No lock.
  virtual uint64_t Generation() const { return 0; }
};

// For servers that were told to be insecure: everyone is one caller with every role, of tenant
// `public`.
class InsecureCallerResolver final : public CallerResolver {
 public:
  absl::StatusOr<Caller> Resolve(const grpc::ServerContextBase& context,
                                 absl::string_view method) const override;
};

}  // namespace cairn
