// Statuses at the edge: absl::Status inside, grpc::Status and google.rpc details on the wire.
//
// Codes are the same numbers in both. Details travel in `grpc-status-details-bin`. No state;
// thread-safe.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace cairn {

// Longer messages are cut, with a mark: trailers over a few kilobytes are refused by peers.
inline constexpr size_t kStatusMessageBytesMax = 1024;
// Details beyond this lose the facts of their ErrorInfo.
inline constexpr size_t kStatusDetailsBytesMax = 3072;

// What a handler finishes with. Always has an ErrorInfo (by default the code's name is its reason);
// RESOURCE_EXHAUSTED always has a RetryInfo (kRetryDelayDefault). Only these two payloads go out. A
// message that is not UTF-8 loses its foreign bytes to '?'.
grpc::Status ToGrpcStatus(const absl::Status& status);

// What a client learned: code, message, and every detail as a payload. Details that do not parse
// are left out; a code that gRPC does not know is UNKNOWN.
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace cairn
