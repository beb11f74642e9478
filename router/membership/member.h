// Member: a node as a source of membership knows it. Values.
#pragma once

#include <string>
#include <vector>

namespace cairn::router {

enum class MemberState {
  kServing,
  kNotReady,  // Starts, or failed its readiness probe: gets nothing new.
  kLeaving,   // Terminates: gets nothing new.
};

struct Member {
  std::string address;  // host:port, of its feed.
  // What stands there, as far as the source can tell, as a pod's uid: another one at the same
  // address is another node. Empty: it cannot.
  std::string identity = {};
  MemberState state = MemberState::kServing;

  friend bool operator==(const Member&, const Member&) = default;
};

// In the order of addresses, each once, so that all routers of a fleet follow the same.
using MemberList = std::vector<Member>;

}  // namespace cairn::router
