// ClientOptions: how a client reaches one cache node.
#pragma once

#include <grpcpp/security/credentials.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cpp/retry_policy.h"
#include "common/rpc/channel_options.h"
#include "common/security/call_metadata.h"

namespace cairn {

inline constexpr uint32_t kDataChannelsMax = 16;

struct ClientOptions {
  // host:port, or unix:/path.
  std::string target = "127.0.0.1:7070";
  // Null: no TLS, for nodes on loopback that were told to be insecure. (gRPC shares credentials.)
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  // What each call sends along to say who makes it; borrowed; null: nothing.
  const CallMetadata* metadata = nullptr;
  // Connections for payload, beside one for small calls and one for the feed, so that a lookup does
  // not queue behind megabytes. 1 to kDataChannelsMax.
  uint32_t data_channels = 2;
  // Deadlines of calls that are not given one of their own: of small calls, without what they ask
  // the node to wait; and of calls that move payload.
  absl::Duration control_timeout = absl::Seconds(5);
  absl::Duration data_timeout = absl::Seconds(60);
  // Use memory in place of connections where the node is on this host (local/).
  bool use_local = true;
  RetryOptions retry;
  ChannelOptions channel;
};

// INVALID_ARGUMENT naming the option that is out of its range.
absl::Status ValidateClientOptions(const ClientOptions& options);

}  // namespace cairn
