#include "router/booking/session_memory.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn::router {

SessionMemory::SessionMemory(const SessionOptions& options) : options_(options) {
  CAIRN_CHECK(options.sessions_max > 0 && options.ttl > absl::ZeroDuration());
}

// Unambiguous: the tenant's length says where it ends.
std::string SessionMemory::NameOf(absl::string_view tenant, absl::string_view session) {
  return absl::StrCat(tenant.size(), ":", tenant, session);
}

std::optional<ReplicaId> SessionMemory::Find(absl::string_view tenant, absl::string_view session,
                                             absl::Time now) const {
  const auto found = sessions_.find(NameOf(tenant, session));
  if (found == sessions_.end()) return std::nullopt;
  const Session& known = *found->second;
  if (known.expires <= now) return std::nullopt;
  const auto freed = freed_.find(known.replica);
  if (freed != freed_.end() && known.turn <= freed->second) return std::nullopt;
  return known.replica;
}

void SessionMemory::Note(absl::string_view tenant, absl::string_view session, ReplicaId replica,
                         absl::Time now) {
  CAIRN_CHECK(!session.empty());
  std::string name = NameOf(tenant, session);
  const auto found = sessions_.find(name);
  if (found == sessions_.end()) {
    const auto added = order_.emplace(order_.end(), Session{.name = std::move(name)});
    sessions_.emplace(added->name, added);
  } else {
    order_.splice(order_.end(), order_, found->second);
  }
  Session& noted = order_.back();
  noted.replica = replica;
  noted.turn = ++turn_;
  noted.expires = now + options_.ttl;
  if (sessions_.size() > options_.sessions_max) DropOldest();
}

void SessionMemory::Expire(absl::Time now) {
  while (!order_.empty() && order_.front().expires <= now) DropOldest();
}

void SessionMemory::DropOldest() {
  sessions_.erase(order_.front().name);
  order_.pop_front();
  CAIRN_CHECK(sessions_.size() == order_.size());
}

}  // namespace cairn::router
