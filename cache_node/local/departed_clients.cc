#include "cache_node/local/departed_clients.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "common/base/check.h"

namespace cairn::node {

Descriptor DepartedClients::WatchProcess(int process) {
  if (process <= 0) return Descriptor();
  return Descriptor(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
}

bool DepartedClients::full() const {
  absl::MutexLock lock(&mutex_);
  return by_key_.size() >= kDepartedMax;
}

void DepartedClients::Add(uint64_t key, const LocalConnectionId& connection, BorrowerId borrower,
                          Descriptor watch) {
  absl::MutexLock lock(&mutex_);
  CAIRN_CHECK(by_connection_.emplace(connection, key).second);
  by_key_[key] = Departed{connection, borrower, std::move(watch)};
}

std::optional<BorrowerId> DepartedClients::TakeByKey(uint64_t key) {
  absl::MutexLock lock(&mutex_);
  return Take(key);
}

std::optional<BorrowerId> DepartedClients::TakeByConnection(const LocalConnectionId& connection) {
  absl::MutexLock lock(&mutex_);
  auto it = by_connection_.find(connection);
  return it == by_connection_.end() ? std::nullopt : Take(it->second);
}

std::optional<BorrowerId> DepartedClients::Take(uint64_t key) {
  auto it = by_key_.find(key);
  if (it == by_key_.end()) return std::nullopt;
  const BorrowerId borrower = it->second.borrower;
  by_connection_.erase(it->second.connection);
  by_key_.erase(it);
  return borrower;
}

}  // namespace cairn::node
