// ListenAddress: where a server listens: "host:port", "[v6]:port" or "unix:/path".
//
// Hosts are numeric, or "localhost", which is 127.0.0.1: a program's start never waits for a name
// server. A value type.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace cairn {

class ListenAddress {
 public:
  // INVALID_ARGUMENT naming `text` and the forms that are accepted.
  static absl::StatusOr<ListenAddress> Parse(absl::string_view text);

  bool is_unix() const { return !path_.empty(); }
  bool is_ipv6() const { return host_.find(':') != std::string::npos; }
  // Whether only processes of this machine reach it.
  bool IsLoopback() const;

  // Numeric, without brackets. REQUIRES: !is_unix().
  const std::string& host() const { return host_; }
  int port() const { return port_; }
  // REQUIRES: is_unix().
  const std::string& path() const { return path_; }

  // "127.0.0.1:7000", "[::1]:7000". REQUIRES: !is_unix().
  std::string HostPort() const;
  // As Parse reads it and as gRPC takes it.
  std::string ToString() const;
  // The same host with another port. REQUIRES: !is_unix().
  ListenAddress WithPort(int port) const;

 private:
  std::string host_;
  int port_ = 0;
  std::string path_;
};

// Binds `address` for a moment: OK, or FAILED_PRECONDITION with the address and why it cannot be
// listened on (taken, not of this machine, not allowed). A Unix socket counts as taken when
// somebody accepts there; one that nobody serves any more does not.
absl::Status ProbeBind(const ListenAddress& address);

}  // namespace cairn
