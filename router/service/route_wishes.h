// RouteWishes: what a RouteRequest says beside its prompt, checked: session, labels, workers to
// leave out, deadline.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cairn/v1/router.pb.h"
#include "common/rpc/labels.h"
#include "router/core/router_types.h"

namespace cairn::router {

// Views point into the request.
struct RouteWishes {
  absl::string_view session;
  std::vector<Label> required_labels;
  std::vector<PreferredLabel> preferred_labels;
  std::vector<absl::string_view> excluded_workers;
  std::optional<absl::Duration> deadline;

  // The query points here.
  void AddTo(RouteQuery* query) const;
};

// INVALID_ARGUMENT that names the field: what is over a bound (route_limits.h), a label that stands
// twice, seconds out of range. An excluded worker may stand twice and need not be known: clients
// add those they failed at.
absl::Status ReadWishes(const v1::RouteRequest& request, RouteWishes* wishes);

}  // namespace cairn::router
