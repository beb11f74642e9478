// PullConfig: what a node is told of pulls at start. The defaults are those of the flags.
#pragma once

#include <string>

#include "common/security/client_security.h"
#include "common/server/byte_size.h"
#include "common/server/config_errors.h"

namespace cairn::node {

struct PullConfig {
  static constexpr int kThreadsMax = 64;
  // What one transfer holds beside the slots: a frame, and what gRPC read ahead of it.
  static constexpr ByteSize kBytesPerThread = ByteSize::MiB(8);

  std::string peer_file;  // Empty: this node pulls nothing.
  ClientSecurityConfig security;
  std::string tls_name;
  // All pulls together; 0: no bound. The default is about a tenth of a link of 10 Gbit/s: what is
  // copied ahead of its use is not to be felt by what is read.
  ByteSize bytes_per_second = ByteSize::MiB(128);
  int threads = 2;

  bool on() const { return !peer_file.empty(); }
  void Check(ConfigErrors& errors) const;
};

}  // namespace cairn::node
