#include "common/server/metrics_server.h"

#include <exception>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/server/listen_address.h"
#include "prometheus/exposer.h"

namespace cairn {
namespace {

constexpr char kPath[] = "/metrics";
constexpr int kThreads = 2;
// A scraper that does not send its request, or does not read the answer, gives its thread back.
constexpr int kRequestTimeoutMs = 5000;
constexpr int kWaitingConnectionsMax = 16;

std::vector<std::string> CivetOptions(const ListenAddress& address) {
  return {"listening_ports",    address.HostPort(),
          "num_threads",        absl::StrCat(kThreads),
          "request_timeout_ms", absl::StrCat(kRequestTimeoutMs),
          "connection_queue",   absl::StrCat(kWaitingConnectionsMax),
          "enable_keep_alive",  "no"};
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(const Metrics& metrics,
                                                                    absl::string_view address) {
  absl::StatusOr<ListenAddress> parsed = ListenAddress::Parse(address);
  if (!parsed.ok()) return parsed.status();
  if (parsed->is_unix() || parsed->is_ipv6()) {
    return absl::InvalidArgumentError(
        absl::StrCat(address, ": metrics are served on an IPv4 host:port only"));
  }
  // The HTTP server says only that it failed; this says why.
  if (absl::Status status = ProbeBind(*parsed); !status.ok()) return status;
  std::unique_ptr<prometheus::Exposer> exposer;
  // The one place where the HTTP server's exceptions end.
  try {
    exposer = std::make_unique<prometheus::Exposer>(CivetOptions(*parsed));
    for (const auto& collectable : metrics.collectables()) {
      exposer->RegisterCollectable(collectable, kPath);
    }
  } catch (const std::exception& error) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot serve metrics on ", address, ": ", error.what()));
  }
  const std::vector<int> ports = exposer->GetListeningPorts();
  CAIRN_CHECK(ports.size() == 1);
  return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(exposer), ports[0]));
}

MetricsServer::MetricsServer(std::unique_ptr<prometheus::Exposer> exposer, int port)
    : exposer_(std::move(exposer)), port_(port) {}

MetricsServer::~MetricsServer() = default;

}  // namespace cairn
