#include "common/server/metrics_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/server/wake_event.h"
#include "prometheus/exposer.h"

namespace cairn {
namespace {

constexpr char kPath[] = "/metrics";
constexpr int kThreads = 2;
// A scraper that does not send its request, or does not read the answer, gives its thread back.
constexpr int kRequestTimeoutMs = 5000;
constexpr int kWaitingConnectionsMax = 16;
constexpr absl::Duration kKnockInterval = absl::Milliseconds(5);

std::vector<std::string> CivetOptions(const ListenAddress& address) {
  return {"listening_ports",    address.HostPort(),
          "num_threads",        absl::StrCat(kThreads),
          "request_timeout_ms", absl::StrCat(kRequestTimeoutMs),
          "connection_queue",   absl::StrCat(kWaitingConnectionsMax),
          "enable_keep_alive",  "no"};
}

// Connects, and lets go again.
void Knock(const ListenAddress& address) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return;
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(static_cast<uint16_t>(address.port()));
  CAIRN_CHECK(inet_pton(AF_INET, address.host().c_str(), &name.sin_addr) == 1);
  // Best effort: whether it succeeds is no matter.
  (void)connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof(name));
  close(fd);
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(const Metrics& metrics,
                                                                    absl::string_view address) {
  absl::StatusOr<ListenAddress> parsed = ListenAddress::Parse(address);
  if (!parsed.ok()) return parsed.status();
  if (parsed->is_unix() || parsed->is_ipv6()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--metrics-listen: ", address, ": metrics are served on an IPv4 host:port only"));
  }
  // The HTTP server says only that it failed; this says why.
  if (absl::Status status = ProbeBind(*parsed); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat("--metrics-listen: ", status.message()));
  }
  std::unique_ptr<prometheus::Exposer> exposer;
  // The one place where the HTTP server's exceptions end.
  try {
    exposer = std::make_unique<prometheus::Exposer>(CivetOptions(*parsed));
    for (const auto& collectable : metrics.collectables()) {
      exposer->RegisterCollectable(collectable, kPath);
    }
  } catch (const std::exception& error) {
    return absl::FailedPreconditionError(
        absl::StrCat("--metrics-listen: cannot serve metrics on ", address, ": ", error.what()));
  }
  const std::vector<int> ports = exposer->GetListeningPorts();
  CAIRN_CHECK(ports.size() == 1);
  return std::unique_ptr<MetricsServer>(
      new MetricsServer(std::move(exposer), parsed->WithPort(ports[0])));
}

MetricsServer::MetricsServer(std::unique_ptr<prometheus::Exposer> exposer, ListenAddress address)
    : exposer_(std::move(exposer)), address_(std::move(address)) {}

// The HTTP server looks whether it is to stop only after a wait of two seconds for connections;
// each one that comes ends the wait.
MetricsServer::~MetricsServer() {
  WakeEvent closed;
  std::thread closer([this, &closed] {
    exposer_.reset();
    closed.Set();
  });
  while (!closed.WaitFor(kKnockInterval)) Knock(address_);
  closer.join();
}

}  // namespace cairn
