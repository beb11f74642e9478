// Resolver: from a name to its addresses.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace cairn::router {

class Resolver {
 public:
  virtual ~Resolver() = default;

  // Numeric, IPv4 and IPv6 without brackets, in any order, each once. UNAVAILABLE with the reason;
  // a name without addresses is that too, as a service is for a moment when all its pods restart.
  virtual absl::StatusOr<std::vector<std::string>> Resolve(const std::string& host) = 0;
};

// The machine's, by getaddrinfo. A call takes as long as that does: with a server that is silent,
// by default 10 s for each that resolv.conf names.
class SystemResolver final : public Resolver {
 public:
  absl::StatusOr<std::vector<std::string>> Resolve(const std::string& host) override;
};

}  // namespace cairn::router
