#include "cache_node/local/node_local.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/bytes16.h"
#include "common/base/hex.h"

namespace cairn::node {

NodeLocal::NodeLocal(const LocalConfig& config, const Parts& parts)
    : config_(config),
      parts_(parts),
      staging_(config.staging_memory.bytes()),
      metrics_(parts.metrics, parts.store, &counters_, &staging_) {}

absl::Status NodeLocal::Start() {
  if (!config_.on()) return absl::OkStatus();
  const bool any_name = config_.socket == LocalConfig::kAuto;
  LocalServer::Options options;
  options.socket = config_.socket;
  if (any_name) {
    options.socket =
        absl::StrCat("@cairn-node-", ToHex(parts_.random->New<LocalConnectionId>().view()));
  }
  options.connections_max = static_cast<size_t>(config_.connections_max);
  options.return_within = config_.return_within;
  LocalServer::Parts parts;
  parts.store = parts_.store;
  parts.rates = parts_.rates;
  parts.staging = &staging_;
  parts.counters = &counters_;
  parts.callers = parts_.callers;
  parts.time = parts_.time;
  parts.random = parts_.random;
  absl::StatusOr<std::unique_ptr<LocalServer>> server =
      LocalServer::Start(std::move(options), parts);
  if (server.ok()) {
    server_ = *std::move(server);
    return absl::OkStatus();
  }
  if (!any_name) return server.status();
  if (parts_.log != nullptr) {
    parts_.log(absl::StrCat("clients of this host are served over the network: ",
                            server.status().message()));
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::OpenLocalResponse> NodeLocal::Open(const Caller& caller) {
  if (server_ == nullptr) return v1::OpenLocalResponse();
  return server_->Open(caller);
}

void NodeLocal::WakeForRecalls() {
  if (server_ != nullptr) server_->WakeForRecalls();
}

void NodeLocal::Tick() {
  if (server_ != nullptr) server_->Tick();
}

void NodeLocal::Drain() {
  if (server_ != nullptr) server_->Drain();
}

}  // namespace cairn::node
