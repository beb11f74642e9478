// MetricsServer: serves one Metrics over HTTP as /metrics, for Prometheus to scrape.
//
// Plain HTTP without authentication: bind it to loopback, or to a network that only the monitoring
// reaches. Serves from construction to destruction on two threads of its own. The Metrics must
// outlive it.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/metrics/metrics.h"
#include "common/server/listen_address.h"

namespace prometheus {
class Exposer;
}

namespace cairn {

class MetricsServer {
 public:
  // Listens on `address`, "host:port" with a numeric IPv4 host ("localhost" is 127.0.0.1); port 0
  // takes a free one. INVALID_ARGUMENT for an address that is none (Debian builds the HTTP library
  // without IPv6), FAILED_PRECONDITION where it cannot be bound; both name it,
  // and --metrics-listen.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(const Metrics& metrics,
                                                              absl::string_view address);
  ~MetricsServer();

  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  // As bound, also for port 0.
  int port() const { return address_.port(); }

 private:
  MetricsServer(std::unique_ptr<prometheus::Exposer> exposer, ListenAddress address);

  std::unique_ptr<prometheus::Exposer> exposer_;
  const ListenAddress address_;
};

}  // namespace cairn
