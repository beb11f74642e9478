#include "cache_node/local/departed_clients.h"

#include <utility>

#include "common/base/check.h"

namespace cairn::node {

bool DepartedClients::full(absl::string_view tenant) const {
  absl::MutexLock lock(&mutex_);
  const auto own = by_tenant_.find(tenant);
  return departed_ >= kDepartedMax || (own != by_tenant_.end() && own->second >= kPerTenantMax);
}

void DepartedClients::Joined(uint64_t key, const LocalConnectionId& connection,
                             absl::string_view tenant) {
  absl::MutexLock lock(&mutex_);
  Client client;
  client.connection = connection;
  client.tenant = std::string(tenant);
  CAIRN_CHECK(by_connection_.emplace(connection, key).second);
  CAIRN_CHECK(by_key_.emplace(key, std::move(client)).second);
}

bool DepartedClients::Left(uint64_t key, BorrowerId borrower,
                           std::shared_ptr<const Descriptor> watch) {
  absl::MutexLock lock(&mutex_);
  const auto found = by_key_.find(key);
  CAIRN_CHECK(found != by_key_.end() && !found->second.borrower.has_value());
  if (found->second.returned) {
    Erase(key);
    return false;
  }
  found->second.borrower = borrower;
  found->second.watch = std::move(watch);
  ++departed_;
  ++by_tenant_[found->second.tenant];
  return true;
}

void DepartedClients::Forget(uint64_t key) {
  absl::MutexLock lock(&mutex_);
  Erase(key);
}

std::optional<BorrowerId> DepartedClients::TakeByKey(uint64_t key) {
  absl::MutexLock lock(&mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return std::nullopt;
  const std::optional<BorrowerId> borrower = found->second.borrower;
  if (borrower.has_value()) Erase(key);
  return borrower;
}

DepartedClients::Said DepartedClients::Returned(const LocalConnectionId& connection) {
  absl::MutexLock lock(&mutex_);
  const auto found = by_connection_.find(connection);
  if (found == by_connection_.end()) return {};
  const uint64_t key = found->second;
  Client& client = by_key_.at(key);
  if (!client.borrower.has_value()) {
    client.returned = true;
    return {.borrower = std::nullopt, .still_connected = key};
  }
  const BorrowerId borrower = *client.borrower;
  Erase(key);
  return {.borrower = borrower, .still_connected = std::nullopt};
}

void DepartedClients::Erase(uint64_t key) {
  const auto found = by_key_.find(key);
  CAIRN_CHECK(found != by_key_.end());
  if (found->second.borrower.has_value()) {
    const auto own = by_tenant_.find(found->second.tenant);
    CAIRN_CHECK(departed_ > 0 && own != by_tenant_.end() && own->second > 0);
    --departed_;
    if (--own->second == 0) by_tenant_.erase(own);
  }
  by_connection_.erase(found->second.connection);
  by_key_.erase(found);
}

}  // namespace cairn::node
