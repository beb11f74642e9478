// MemberSource: where the nodes come from, when it is not a list of flags.
//
// A source says who there is, and anew whenever that changed. When it cannot be asked it says
// nothing: the last list stands, and what is dead of it is told by its feed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "common/server/wake_event.h"
#include "router/membership/member.h"

namespace cairn::router {

class MemberSource {
 public:
  using Listener = std::function<void(const MemberList&)>;

  struct Status {
    // Why it could not be asked last; OK while it can, UNAVAILABLE before the first list.
    absl::Status last;
    // Times that it was asked, and of them without success.
    uint64_t asked = 0;
    uint64_t failed = 0;
  };

  virtual ~MemberSource() = default;

  // For people: what it is and whom it asks.
  virtual std::string name() const = 0;
  // Tells `listener` the first list, also an empty one, and each that differs from the last, until
  // `stop` is set. To be called once; `listener` is called on its thread.
  virtual void Run(const WakeEvent& stop, const Listener& listener) = 0;
  // Thread-safe.
  virtual Status status() const = 0;
};

}  // namespace cairn::router
