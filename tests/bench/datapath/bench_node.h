// BenchNode: a real cairn-node in a process of its own, and how clients reach it.
//
// Listens on loopback TCP and on a Unix socket, or on TCP with TLS (mutual). Ends with the object.
// Thread-safe once started.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cpp/cache_node_client.h"
#include "client/cpp/client_parts.h"
#include "common/security/client_security.h"
#include "tests/testing/server_process.h"

namespace cairn::bench {

// Where cairn-bench lies; the programs that suites run lie beside it.
absl::StatusOr<std::string> ProgramFolder();

enum class Transport { kTcp, kUnix, kTls };

// A client with connections of its own, as each rank's process has one.
class BenchClient {
 public:
  explicit BenchClient(ClientOptions options) : client_(options, parts_.parts()) {}
  CacheNodeClient* operator->() { return &client_; }
  CacheNodeClient& operator*() { return client_; }

 private:
  SystemClientParts parts_;
  CacheNodeClient client_;
};

class BenchNode {
 public:
  struct Options {
    uint64_t pool_mib = 1024;
    bool tls = false;
    std::vector<std::string> flags = {};
  };

  static absl::StatusOr<std::unique_ptr<BenchNode>> Start(const Options& options);
  ~BenchNode();

  // What a client of this transport is made with. REQUIRES: the node serves it.
  ClientOptions OptionsFor(Transport transport) const;
  std::unique_ptr<BenchClient> Connect(Transport transport) const;
  testing::ServerProcess& process() { return *process_; }

 private:
  BenchNode() = default;
  absl::Status MakeCertificates();
  absl::Status StartProcess(const Options& options);

  std::string folder_;
  std::unique_ptr<ClientSecurity> security_;  // Null without TLS.
  std::unique_ptr<testing::ServerProcess> process_;
};

}  // namespace cairn::bench
