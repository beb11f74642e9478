#include "common/server/rpc_server.h"

#include <grpc/grpc.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/resource_quota.h"

namespace cairn {
namespace {

// Reflection is the only synchronous service: each of its open streams holds a thread.
constexpr int kSyncThreadsMax = 8;

absl::Status CheckInsecure(const RpcServer::Options& options, const ListenAddress& address) {
  if (options.credentials != nullptr || options.has_credentials) return absl::OkStatus();
  if (!options.insecure) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", options.listen_flag, "=", address.ToString(),
                     ": no credentials are configured; give --tls-cert and --tls-key, or say --",
                     options.insecure_flag, " to serve plain text, on loopback only"));
  }
  if (!address.IsLoopback() && !options.insecure_anywhere) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--", options.listen_flag, "=", address.ToString(), ": --", options.insecure_flag,
        " serves loopback only; listen on 127.0.0.1, [::1] or unix:/path, give --tls-cert and "
        "--tls-key, or insist with --",
        options.insecure_flag, "-anywhere"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ListenAddress>> ParseAddresses(const RpcServer::Options& options) {
  if (options.listen_addresses.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", options.listen_flag, ": must name an address to listen on"));
  }
  std::vector<ListenAddress> addresses;
  std::vector<std::string> errors;
  for (const std::string& text : options.listen_addresses) {
    absl::StatusOr<ListenAddress> address = ListenAddress::Parse(text);
    absl::Status status = address.status();
    if (!status.ok()) {
      errors.push_back(absl::StrCat("--", options.listen_flag, ": ", status.message()));
      continue;
    }
    status = CheckInsecure(options, *address);
    if (!status.ok()) errors.emplace_back(status.message());
    addresses.push_back(*std::move(address));
  }
  if (!errors.empty()) return absl::InvalidArgumentError(absl::StrJoin(errors, "\n"));
  return addresses;
}

}  // namespace

void KeepGrpc() {
  static const bool kept = [] {
    grpc_init();
    return true;
  }();
  CAIRN_CHECK(kept);
}

absl::Status RpcServer::Validate(const Options& options) {
  return ParseAddresses(options).status();
}

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(Options options) {
  absl::StatusOr<std::vector<ListenAddress>> addresses = ParseAddresses(options);
  if (!addresses.ok()) return addresses.status();
  // gRPC says only that it failed, and takes a Unix socket away from whoever serves it.
  for (const ListenAddress& address : *addresses) {
    if (absl::Status status = ProbeBind(address); !status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat("--", options.listen_flag, ": ", status.message()));
    }
  }
  std::unique_ptr<RpcServer> server(new RpcServer(std::move(options), *std::move(addresses)));
  if (absl::Status status = server->Listen(); !status.ok()) return status;
  server->SetReady(false);
  server->server_->GetHealthCheckService()->SetServingStatus("liveness", true);
  return server;
}

RpcServer::RpcServer(Options options, std::vector<ListenAddress> addresses)
    : options_(std::move(options)), addresses_(std::move(addresses)) {}

RpcServer::~RpcServer() { Shutdown(absl::ZeroDuration()); }

absl::Status RpcServer::Listen() {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  grpc::ResourceQuota quota(absl::StrJoin(options_.listen_addresses, ","));
  quota.SetMaxThreads(kSyncThreadsMax);
  if (options_.transport_bytes > 0) quota.Resize(options_.transport_bytes);
  builder.SetResourceQuota(quota);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 1);
  // Or a second process on the same port would silently share the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  if (options_.configure != nullptr) options_.configure(builder);
  for (const NamedService& service : options_.services) builder.RegisterService(service.service);
  if (options_.generic != nullptr) builder.RegisterCallbackGenericService(options_.generic);
  std::vector<int> ports(addresses_.size(), 0);
  for (size_t i = 0; i < addresses_.size(); ++i) {
    builder.AddListeningPort(
        addresses_[i].ToString(),
        options_.credentials ? options_.credentials : grpc::InsecureServerCredentials(), &ports[i]);
  }
  server_ = builder.BuildAndStart();
  for (size_t i = 0; i < addresses_.size(); ++i) {
    if (ports[i] <= 0) {
      return absl::FailedPreconditionError(absl::StrCat(
          "--", options_.listen_flag, ": cannot listen on ", addresses_[i].ToString()));
    }
    if (!addresses_[i].is_unix()) addresses_[i] = addresses_[i].WithPort(ports[i]);
  }
  if (server_ == nullptr) return absl::InternalError("gRPC could not start the server");
  return absl::OkStatus();
}

void RpcServer::SetReady(bool ready) {
  grpc::HealthCheckServiceInterface* const health = server_->GetHealthCheckService();
  CAIRN_CHECK(health != nullptr);
  health->SetServingStatus("readiness", ready);
  for (const NamedService& service : options_.services) {
    health->SetServingStatus(service.name, ready);
  }
  for (const std::string& name : options_.other_service_names) {
    health->SetServingStatus(name, ready);
  }
}

void RpcServer::Shutdown(absl::Duration grace) {
  if (server_ == nullptr || std::exchange(shut_down_, true)) return;
  server_->GetHealthCheckService()->Shutdown();
  server_->Shutdown(absl::ToChronoTime(absl::Now() + grace));
  server_->Wait();
}

}  // namespace cairn
