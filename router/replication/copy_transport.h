// CopyTransport: how a node is asked to copy blocks. An interface, so that tests and simulations
// have nodes of their own. Thread-safe.
#pragma once

#include <functional>

#include "router/replication/replication_types.h"

namespace cairn::router {

class CopyTransport {
 public:
  virtual ~CopyTransport() = default;

  using Done = std::function<void(const CopyResult&)>;
  // Returns at once. `done` is called once, from any thread, also where nothing could be begun; the
  // order stays until then.
  virtual void Start(const CopyOrder& order, Done done) = 0;
};

}  // namespace cairn::router
