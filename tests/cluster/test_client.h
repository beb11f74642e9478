// TestClient: a client of one node with all that it borrows, on the machine's clock.
#pragma once

#include <string>

#include "client/cpp/cache_node_client.h"
#include "client/cpp/client_parts.h"

namespace cairn::testing {

class TestClient {
 public:
  explicit TestClient(const std::string& address) : client_(OptionsFor(address), parts_.parts()) {}

  CacheNodeClient* operator->() { return &client_; }
  CacheNodeClient& operator*() { return client_; }

 private:
  static ClientOptions OptionsFor(const std::string& address) {
    ClientOptions options;
    options.target = address;
    options.control_timeout = absl::Seconds(20);
    return options;
  }

  SystemClientParts parts_;
  CacheNodeClient client_;
};

}  // namespace cairn::testing
