// NodeProcess: the real cairn-node as a process, on a free port of loopback.
//
// For what only processes show: signals, exit codes, resident memory, clients that die. Knows no
// test framework; a fixture prints Log() when a test failed. Thread-safety as ChildProcess.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/testing/child_process.h"

namespace cairn::testing {

class NodeProcess {
 public:
  struct Options {
    // Path of cairn-node.
    std::string program;
    // Beside those that make it listen on a free port without TLS.
    std::vector<std::string> flags;
    absl::Duration ready_timeout = absl::Seconds(30);
  };

  // Returns when the health service says that the node is ready. Not OK, with the end of the node's
  // log, when it ended first or was not ready in time.
  static absl::StatusOr<std::unique_ptr<NodeProcess>> Start(const Options& options);
  ~NodeProcess();

  // host:port.
  const std::string& address() const { return address_; }
  ChildProcess& process() { return *process_; }
  const ChildProcess& process() const { return *process_; }
  std::string Log() const { return process_->Log(); }

  void Kill9() { process_->Kill9(); }
  // SIGTERM; the exit status, or nothing when it still runs after `timeout`.
  std::optional<int> Terminate(absl::Duration timeout);
  // SIGSTOP and SIGCONT: alive, and deaf.
  void Stop();
  void Continue();

 private:
  NodeProcess(std::string folder, std::unique_ptr<ChildProcess> process);
  absl::Status AwaitReady(absl::Duration timeout);

  const std::string folder_;
  std::unique_ptr<ChildProcess> process_;
  std::string address_;
};

// One run of cairn-node that ends by itself, as with flags that it refuses.
struct NodeRun {
  std::optional<int> exit_status;  // Nothing: it had to be killed after `timeout`.
  std::string output;              // stdout and stderr.
};
NodeRun RunNode(const std::string& program, const std::vector<std::string>& flags,
                absl::Duration timeout);

}  // namespace cairn::testing
