// How our gRPC servers are set up: what keeps unread payload out of their memory, and what dead or
// wasteful peers may cost.
#pragma once

#include <grpcpp/server_builder.h>

#include "absl/time/time.h"
#include "common/wire/limits.h"

namespace cairn {

// Closest client pings that a server puts up with.
inline constexpr absl::Duration kKeepaliveIntervalMin = absl::Seconds(10);
// Headers or trailers of one call.
inline constexpr int kMetadataBytesMax = 16 << 10;
// Bytes of one stream that the server's transport takes before a handler reads.
inline constexpr int kStreamLookaheadBytes = 64 << 10;
// Calls at once on one connection; more wait in their client.
inline constexpr int kCallsPerConnectionMax = 1024;

struct ServerOptions {
  // Largest message, either way. A larger one is RESOURCE_EXHAUSTED, from gRPC itself.
  uint32_t message_bytes_max = kMessageBytesMax;
  // As in ChannelOptions, towards clients.
  absl::Duration keepalive_interval = absl::Seconds(30);
  absl::Duration keepalive_timeout = absl::Seconds(10);
  // A connection takes no further call after about this long (gRPC spreads it by a tenth), so that
  // clients connect anew, and look their names up again, in time. Calls that run on it, feeds among
  // them, go on for as long as they like.
  absl::Duration connection_age = absl::Minutes(30);
};

// Sets the builder's arguments. A fixed, small window instead of one that grows with the measured
// bandwidth: payload stays in the client until a handler reads it. Compressed messages are refused
// (UNIMPLEMENTED): KV does not shrink, and a small message that unpacks to a large one would pass
// by the message bound.
void ApplyServerOptions(const ServerOptions& options, grpc::ServerBuilder* builder);

}  // namespace cairn
