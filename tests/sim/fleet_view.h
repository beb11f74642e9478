// FleetView: the processes that live now, for those that look at them from outside. Null: down.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/sim/node/sim_node.h"
#include "tests/sim/router/sim_router.h"
#include "tests/sim/worker/prompt_book.h"

namespace cairn::sim {

class FleetView {
 public:
  virtual ~FleetView() = default;
  virtual size_t node_count() const = 0;
  virtual const SimNode* node(size_t place) const = 0;
  // Since when the node is up or down, as it is now.
  virtual absl::Time node_changed_at(size_t place) const = 0;
  virtual const SimRouter* router() const = 0;
  virtual absl::Time router_changed_at() const = 0;
  // The router was stalled within the last `span`.
  virtual bool router_stalled_within(absl::Duration span) const = 0;
};

}  // namespace cairn::sim
