// How our clients' gRPC channels are set up.
#pragma once

#include <grpcpp/support/channel_arguments.h>

#include <string>

#include "absl/time/time.h"
#include "common/wire/limits.h"

namespace cairn {

struct ChannelOptions {
  // Largest message, either way.
  uint32_t message_bytes_max = kMessageBytesMax;
  // Without any byte from the server for this long during a call, ask; without an answer for
  // `keepalive_timeout`, the connection is dead. Servers refuse pings closer than
  // kKeepaliveIntervalMin (server_options.h).
  absl::Duration keepalive_interval = absl::Seconds(30);
  absl::Duration keepalive_timeout = absl::Seconds(10);
  absl::Duration reconnect_backoff_initial = absl::Milliseconds(100);
  absl::Duration reconnect_backoff_max = absl::Seconds(2);
  // Least time between two lookups of the target's name: while it cannot be reached, it is looked
  // up again as often as that, since pods come back under other addresses. (gRPC would wait 30 s.)
  absl::Duration resolve_interval_min = absl::Seconds(1);
  // With TLS: the name that the server's certificate must have; empty: the host connected to.
  std::string tls_name;
};

// Arguments for grpc::CreateCustomChannel. Each channel has its own connection; no proxy from the
// environment, no service configuration from DNS, and no retries by gRPC: ours know which calls are
// safe to repeat. Deadlines belong to the calls.
grpc::ChannelArguments MakeChannelArguments(const ChannelOptions& options = {});

}  // namespace cairn
