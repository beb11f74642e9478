// RpcServer: the gRPC server of a program: where it listens, what it serves, whether it is ready.
//
// Adds to the program's services the standard health service and reflection. Health names: "" and
// "liveness" serve from start to shutdown; "readiness" and each service's name follow SetReady().
// Thread-safe once started. Services are borrowed and must outlive it.
//
// Calls may arrive before Start returns. Services should use the callback API: only reflection runs
// on synchronous threads here, which are few and bounded.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/server/listen_address.h"
#include "grpcpp/grpcpp.h"

namespace grpc {
class CallbackGenericService;
}

namespace cairn {

// When its last user goes, gRPC 1.51 joins a thread that may sleep ten seconds in a poll: after
// this it never learns of the last one. Before a program's, or a test's, first use of gRPC.
void KeepGrpc();

class RpcServer {
 public:
  struct NamedService {
    std::string name;
    grpc::Service* service = nullptr;
  };

  struct Options {
    // As ListenAddress parses them; port 0 takes a free one.
    std::vector<std::string> listen_addresses;
    // Serves TLS with these; null: plain text. (gRPC shares credentials.)
    std::shared_ptr<grpc::ServerCredentials> credentials;
    // For Validate, which needs no credentials yet: there will be some.
    bool has_credentials = false;
    // Plain text: only for addresses that IsLoopback(), unless `insecure_anywhere`.
    bool insecure = false;
    bool insecure_anywhere = false;
    // What the flags are called in messages, without dashes.
    std::string listen_flag = "listen";
    std::string insecure_flag = "insecure";

    std::vector<NamedService> services;
    // Names of services that have no NamedService, because `generic` serves them whole.
    std::vector<std::string> other_service_names;
    // Gets the calls of all methods that no service takes; or null.
    grpc::CallbackGenericService* generic = nullptr;
    // Of gRPC's own buffers, near which it takes idle ones back; 0: no bound.
    uint64_t transport_bytes = 0;
    // Sets message bounds and channel arguments; or null.
    std::function<void(grpc::ServerBuilder&)> configure;
  };

  // For a class that protoc generated.
  template <typename Generated>
  static NamedService Named(grpc::Service* service) {
    return {Generated::service_full_name(), service};
  }

  // Checks what needs no listening: addresses, and that plain text is asked for and stays on
  // loopback.
  // INVALID_ARGUMENT naming flag, value and what to do.
  static absl::Status Validate(const Options& options);

  // Listens and serves. As Validate, and FAILED_PRECONDITION naming an address that cannot be
  // bound. Not ready until SetReady(true).
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(Options options);

  // As Shutdown(absl::ZeroDuration()).
  ~RpcServer();

  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  // As bound, in the order of the options: with the real ports.
  const std::vector<ListenAddress>& addresses() const { return addresses_; }

  // Liveness does not follow it: a program that is busy is not to be killed.
  void SetReady(bool ready);

  // Says NOT_SERVING, takes no new calls, gives those under way `grace` to end and cancels the
  // rest; returns when all handlers have. Again is a no-op.
  void Shutdown(absl::Duration grace);

 private:
  RpcServer(Options options, std::vector<ListenAddress> addresses);

  absl::Status Listen();

  const Options options_;
  std::vector<ListenAddress> addresses_;
  std::unique_ptr<grpc::Server> server_;
  bool shut_down_ = false;
};

}  // namespace cairn
