#include "client/cpp/node_clients.h"

#include <utility>

#include "common/base/check.h"

namespace cairn {

NodeClients::NodeClients(const ClientOptions& options, const ClientParts& parts, size_t clients_max)
    : options_(options), parts_(parts), clients_max_(clients_max) {
  CAIRN_CHECK(clients_max > 0);
}

absl::StatusOr<std::shared_ptr<CacheNodeClient>> NodeClients::Get(absl::string_view address) {
  // Destroyed after the lock is released: closing connections takes time.
  std::shared_ptr<CacheNodeClient> dropped;
  absl::MutexLock lock(&mutex_);
  if (const auto found = by_address_.find(address); found != by_address_.end()) {
    by_use_.splice(by_use_.begin(), by_use_, found->second.place);
    return found->second.client;
  }
  ClientOptions options = options_;
  options.target = std::string(address);
  if (absl::Status status = ValidateClientOptions(options); !status.ok()) return status;
  if (by_address_.size() == clients_max_) {
    const auto oldest = by_address_.find(by_use_.back());
    CAIRN_CHECK(oldest != by_address_.end());
    dropped = std::move(oldest->second.client);
    by_address_.erase(oldest);
    by_use_.pop_back();
  }
  // Makes channels, which connect by themselves later.
  auto client = std::make_shared<CacheNodeClient>(options, parts_);
  by_use_.push_front(options.target);
  by_address_[options.target] = {client, by_use_.begin()};
  CAIRN_CHECK(by_address_.size() == by_use_.size());
  return client;
}

}  // namespace cairn
