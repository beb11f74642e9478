// ServerProcess: the real cairn-node or cairn-router as a process, on a free port of loopback.
//
// For what only processes show: signals, exit codes, resident memory, clients that die. Knows no
// test framework; a fixture prints Log() when a test failed. Thread-safety as ChildProcess.
#pragma once

#include <grpcpp/security/credentials.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "tests/testing/child_process.h"

namespace cairn::testing {

class ServerProcess {
 public:
  struct Options {
    // Path of the program.
    std::string program;
    // Beside those that make it listen on a free port without TLS and without metrics; they may say
    // otherwise, as with the port of one that was killed.
    std::vector<std::string> flags;
    absl::Duration ready_timeout = absl::Seconds(30);
    // Otherwise Start returns as soon as it listens.
    bool await_ready = true;
    // For asking whether it is ready; null: plain text. (gRPC shares credentials.)
    std::shared_ptr<grpc::ChannelCredentials> credentials = nullptr;
  };

  // Returns when the health service says that the program is ready. Not OK, with the end of its
  // log, when it ended first or was not ready in time.
  static absl::StatusOr<std::unique_ptr<ServerProcess>> Start(const Options& options);
  ~ServerProcess();

  // host:port.
  const std::string& address() const { return address_; }
  ChildProcess& process() { return *process_; }
  const ChildProcess& process() const { return *process_; }
  std::string Log() const { return process_->Log(); }

  // What its health service says now; false when it says nothing.
  bool IsReady() const;
  // Not OK as in Start.
  absl::Status AwaitReady(absl::Time deadline);

  void Kill9() { process_->Kill9(); }
  // SIGTERM; the exit status, or nothing when it still runs after `timeout`.
  std::optional<int> Terminate(absl::Duration timeout);
  // SIGSTOP and SIGCONT: alive, and deaf.
  void Stop();
  void Continue();

 private:
  ServerProcess(std::string folder, std::unique_ptr<ChildProcess> process,
                std::shared_ptr<grpc::ChannelCredentials> credentials);
  // Sets address_.
  absl::Status AwaitListening(absl::Time deadline);
  absl::Status Ended(int exit_status) const;

  const std::string folder_;
  const std::unique_ptr<ChildProcess> process_;
  const std::shared_ptr<grpc::ChannelCredentials> credentials_;
  std::string address_;
};

// The real node; its id is "test" unless `options.flags` give another.
absl::StatusOr<std::unique_ptr<ServerProcess>> StartNode(ServerProcess::Options options);

// One run of a program that ends by itself, as with flags that it refuses.
struct ProgramRun {
  std::optional<int> exit_status;  // Nothing: it had to be killed after `timeout`.
  std::string output;              // stdout and stderr.
};
ProgramRun RunToEnd(const std::string& program, const std::vector<std::string>& flags,
                    absl::Duration timeout);

}  // namespace cairn::testing
