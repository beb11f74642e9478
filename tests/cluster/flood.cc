#include "tests/cluster/flood.h"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "tests/cluster/numbered_prompt.h"
#include "tests/cluster/test_client.h"
#include "tests/testing/child_process.h"
#include "tests/testing/server_process.h"

namespace cairn::testing {
namespace {

constexpr absl::Duration kConnectTimeout = absl::Seconds(60);
// Beyond the clients' own budget, for what they began within it.
constexpr absl::Duration kEndTimeout = absl::Seconds(60);
constexpr absl::Duration kSampleInterval = absl::Milliseconds(5);
constexpr absl::Duration kLookupInterval = absl::Milliseconds(5);
constexpr absl::Duration kHealthInterval = absl::Milliseconds(100);
constexpr size_t kIdleLookups = 100;
constexpr absl::Duration kLookupTimeout = absl::Seconds(5);
constexpr uint64_t kMebi = uint64_t{1} << 20;
// Programs are given this many descriptors where the system allows it.
constexpr rlim_t kDescriptors = 8192;

// Children inherit it.
void RaiseDescriptorLimit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, kDescriptors));
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Samples the node's resident memory until it is stopped.
class RssSampler {
 public:
  explicit RssSampler(const ChildProcess& process) : thread_([this, &process] { Run(process); }) {}

  void Stop() {
    stop_.Notify();
    thread_.join();
  }
  // REQUIRES of both: stopped.
  uint64_t max_bytes() const { return max_bytes_; }
  uint64_t samples() const { return samples_; }

 private:
  void Run(const ChildProcess& process) {
    do {
      max_bytes_ = std::max(max_bytes_, process.RssBytes());
      ++samples_;
    } while (!stop_.WaitForNotificationWithTimeout(kSampleInterval));
  }

  absl::Notification stop_;
  uint64_t max_bytes_ = 0;
  uint64_t samples_ = 0;
  std::thread thread_;
};

// Asks the node's health again and again until it is stopped, each time over a new connection.
class HealthProbe {
 public:
  explicit HealthProbe(const ServerProcess& node) : thread_([this, &node] { Run(node); }) {}

  void Stop() {
    stop_.Notify();
    thread_.join();
  }
  // REQUIRES of both: stopped.
  uint64_t asked() const { return asked_; }
  uint64_t failed() const { return failed_; }

 private:
  void Run(const ServerProcess& node) {
    do {
      ++asked_;
      if (!node.IsReady()) ++failed_;
    } while (!stop_.WaitForNotificationWithTimeout(kHealthInterval));
  }

  absl::Notification stop_;
  uint64_t asked_ = 0;
  uint64_t failed_ = 0;
  std::thread thread_;
};

// Looks a prompt up again and again until it is stopped, or has done so `count` times.
class LookupProbe {
 public:
  LookupProbe(CacheNodeClient& client, const NamespaceHandle& name_space, size_t count = SIZE_MAX)
      : thread_([this, &client, &name_space, count] { Run(client, name_space, count); }) {}

  void Stop() {
    stop_.Notify();
    Join();
  }
  void Join() {
    thread_.join();
    std::sort(latencies_ms_.begin(), latencies_ms_.end());
  }
  // REQUIRES of all: stopped or joined.
  uint64_t answered() const { return latencies_ms_.size(); }
  uint64_t failed() const { return failed_; }
  double Percentile(double fraction) const {
    if (latencies_ms_.empty()) return 0;
    const auto last = static_cast<double>(latencies_ms_.size() - 1);
    return latencies_ms_[static_cast<size_t>(last * fraction)];
  }

 private:
  void Run(CacheNodeClient& client, const NamespaceHandle& name_space, size_t count) {
    const NumberedPrompt prompt(client, name_space, 1, 16);
    LookupOptions options;
    options.timeout = kLookupTimeout;
    for (size_t i = 0; i < count; ++i) {
      const absl::Time start = absl::Now();
      if (client.Lookup(name_space, prompt.span(), options).ok()) {
        latencies_ms_.push_back(absl::ToDoubleMilliseconds(absl::Now() - start));
      } else {
        ++failed_;
      }
      if (stop_.WaitForNotificationWithTimeout(kLookupInterval)) return;
    }
  }

  absl::Notification stop_;
  std::vector<double> latencies_ms_;
  uint64_t failed_ = 0;
  std::thread thread_;
};

using Clients = std::vector<std::unique_ptr<ChildProcess>>;

absl::StatusOr<Clients> StartClients(const FloodOptions& options, const std::string& address,
                                     const std::string& folder) {
  Clients clients;
  const uint32_t each = options.clients / options.processes;
  for (uint32_t i = 0; i < options.processes; ++i) {
    const uint32_t extra = i == 0 ? options.clients % options.processes : 0;
    ChildProcess::Options process;
    process.command = {absl::StrCat(options.programs, "/cairn_flood_client"),
                       absl::StrCat("--node=", address),
                       absl::StrCat("--first=", 1'000'000 * (i + 1)),
                       absl::StrCat("--writers=", each + extra),
                       absl::StrCat("--budget_ms=", absl::ToInt64Milliseconds(options.budget)),
                       absl::StrCat("--slow_percent=", options.slow_percent),
                       absl::StrCat("--blind=", options.blind ? "true" : "false")};
    process.log_path = absl::StrCat(folder, "/client", i);
    process.talk = true;
    absl::StatusOr<std::unique_ptr<ChildProcess>> client = ChildProcess::Start(std::move(process));
    if (!client.ok()) return client.status();
    clients.push_back(*std::move(client));
  }
  for (const auto& client : clients) {
    const absl::StatusOr<std::string> line = client->ReadLine(kConnectTimeout);
    if (!line.ok()) return absl::UnavailableError(absl::StrCat("no connections: ", client->Log()));
  }
  return clients;
}

// Lets all clients go and adds up what they say at the end.
absl::Status RunClients(const FloodOptions& options, Clients& clients, FloodResult* result) {
  for (const auto& client : clients) {
    if (absl::Status status = client->WriteLine("go"); !status.ok()) return status;
  }
  for (const auto& client : clients) {
    const absl::StatusOr<std::string> line = client->ReadLine(options.budget + kEndTimeout);
    if (!line.ok())
      return absl::UnavailableError(absl::StrCat(line.status().message(), client->Log()));
    const std::vector<std::string> words = absl::StrSplit(*line, absl::MaxSplits(' ', 6));
    uint64_t numbers[5] = {};
    for (size_t i = 0; i < 5; ++i) {
      if (words.size() != 7 || !absl::SimpleAtoi(words[i + 1], &numbers[i])) {
        return absl::InternalError(absl::StrCat("a client said: ", *line));
      }
    }
    result->landed += numbers[0];
    result->refused += numbers[1];
    result->unknown += numbers[2];
    result->failed += numbers[3];
    result->refusals += numbers[4];
    if (numbers[3] > 0) result->failure = words[6];
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FloodResult> RunFlood(const FloodOptions& options) {
  RaiseDescriptorLimit();
  const absl::StatusOr<std::unique_ptr<ServerProcess>> node =
      StartNode({.program = absl::StrCat(options.programs, "/cairn-node"),
                 .flags = {absl::StrCat("--memory-limit=", options.memory_limit_mib, "MiB"),
                           absl::StrCat("--host-memory=", options.host_memory_mib, "MiB"),
                           "--local-socket="}});  // The clients stand for those of other hosts.
  if (!node.ok()) return node.status();
  FloodResult result;
  result.memory_limit_bytes = options.memory_limit_mib * kMebi;
  result.rss_idle_bytes = (*node)->process().RssBytes();
  TestClient client((*node)->address());
  const NamespaceHandle name_space = Register(*client, LargeBlocks());
  const std::string folder = MakeTempFolder();
  absl::StatusOr<Clients> clients = StartClients(options, (*node)->address(), folder);
  absl::Status status = clients.status();
  if (status.ok()) {
    LookupProbe idle(*client, name_space, kIdleLookups);
    idle.Join();
    result.lookup_idle_p50_ms = idle.Percentile(0.5);
    const absl::Time start = absl::Now();
    RssSampler sampler((*node)->process());
    LookupProbe lookups(*client, name_space);
    HealthProbe health(**node);
    status = RunClients(options, *clients, &result);
    health.Stop();
    lookups.Stop();
    sampler.Stop();
    result.seconds = absl::ToDoubleSeconds(absl::Now() - start);
    result.rss_sampled_max_bytes = sampler.max_bytes();
    result.samples = sampler.samples();
    result.rss_peak_bytes = (*node)->process().PeakRssBytes();
    result.health_asked = health.asked();
    result.health_failed = health.failed();
    result.lookups = lookups.answered();
    result.lookups_failed = lookups.failed();
    result.lookup_p50_ms = lookups.Percentile(0.5);
    result.lookup_p99_ms = lookups.Percentile(0.99);
    result.lookup_max_ms = lookups.Percentile(1);
    clients->clear();
  }
  std::filesystem::remove_all(folder);
  if (status.ok() && result.rss_peak_bytes == 0) status = absl::UnavailableError("the node died");
  if (!status.ok()) {
    return absl::Status(status.code(), absl::StrCat(status.message(), "\n", (*node)->Log()));
  }
  return result;
}

std::string ToText(const FloodResult& result) {
  return absl::StrFormat(
      "resident: %.1f MiB idle, %.1f MiB at most (%d samples: %.1f MiB), limit %.1f MiB\n"
      "puts: %d landed, %d refused, %d with an unknown token, %d failed%s%s; %d refusals; %.1f s\n"
      "health: asked %d times, %d failed\n"
      "lookups: %d answered, %d failed, p50 %.2f ms (idle node: %.2f ms), p99 %.2f ms, max %.2f "
      "ms\n",
      static_cast<double>(result.rss_idle_bytes) / kMebi,
      static_cast<double>(result.rss_peak_bytes) / kMebi, result.samples,
      static_cast<double>(result.rss_sampled_max_bytes) / kMebi,
      static_cast<double>(result.memory_limit_bytes) / kMebi, result.landed, result.refused,
      result.unknown, result.failed, result.failure.empty() ? "" : ": ", result.failure,
      result.refusals, result.seconds, result.health_asked, result.health_failed, result.lookups,
      result.lookups_failed, result.lookup_p50_ms, result.lookup_idle_p50_ms, result.lookup_p99_ms,
      result.lookup_max_ms);
}

}  // namespace cairn::testing
