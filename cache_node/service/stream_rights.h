// StreamRights: whether the caller of an open stream may go on with it, as tokens and access
// change.
//
// A look costs one load of an atomic while no file has changed; else the call is resolved anew.
// Thread-safe. Borrows the resolver and the call's context, which outlive it.
#pragma once

#include <grpcpp/server_context.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/rpc/caller_resolver.h"

namespace cairn::node {

class StreamRights {
 public:
  // `method` as in "CacheNode/Get".
  StreamRights(const CallerResolver* callers, const grpc::ServerContextBase* context,
               absl::string_view method);

  // Who calls, as resolved at the start, or why the call is refused.
  const absl::StatusOr<Caller>& caller() const { return caller_; }

  // REQUIRES: caller() is OK. UNAUTHENTICATED or PERMISSION_DENIED: the stream is to end.
  absl::Status Check() const;

 private:
  const CallerResolver* const callers_;
  const grpc::ServerContextBase* const context_;
  const std::string method_;
  mutable std::atomic<uint64_t> seen_;  // Generation of what was found good; before caller_.
  const absl::StatusOr<Caller> caller_;
};

}  // namespace cairn::node
