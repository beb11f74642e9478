// TestClient: a client of one node with all that it borrows, on the machine's clock.
#pragma once

#include <string>

#include "client/cpp/cache_node_client.h"
#include "client/cpp/client_parts.h"
#include "common/security/client_security.h"

namespace cairn::testing {

class TestClient {
 public:
  explicit TestClient(const std::string& address) : TestClient(address, nullptr) {}
  // `security`, where not null, is borrowed and outlives it.
  // `use_local`: memory in place of connections, where the node is on this host.
  TestClient(const std::string& address, const ClientSecurity* security, bool use_local = true)
      : client_(OptionsFor(address, security, use_local), parts_.parts()) {}

  CacheNodeClient* operator->() { return &client_; }
  CacheNodeClient& operator*() { return client_; }

 private:
  static ClientOptions OptionsFor(const std::string& address, const ClientSecurity* security,
                                  bool use_local) {
    ClientOptions options;
    options.use_local = use_local;
    options.target = address;
    options.control_timeout = absl::Seconds(20);
    if (security == nullptr) return options;
    options.credentials = security->credentials();
    options.metadata = security->metadata();
    return options;
  }

  SystemClientParts parts_;
  CacheNodeClient client_;
};

}  // namespace cairn::testing
