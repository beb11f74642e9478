// What a request says of replicas, by the labels of their nodes and by name. Pure functions.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cairn/v1/feed.pb.h"
#include "common/rpc/labels.h"
#include "router/core/router_types.h"

namespace cairn::router {

// A node that never said who it is has no label.
bool HasLabels(const std::optional<v1::NodeInfo>& node, absl::Span<const Label> required);

// The sum of the seconds of the preferred labels that the node lacks.
double LackingLabelSeconds(const std::optional<v1::NodeInfo>& node,
                           absl::Span<const PreferredLabel> preferred);

bool IsExcluded(absl::string_view worker_address, absl::Span<const absl::string_view> excluded);

// FAILED_PRECONDITION that names the labels, and of each the values that there are.
absl::Status NoneHasLabels(absl::Span<const Label> required,
                           absl::Span<const v1::NodeInfo* const> nodes);

}  // namespace cairn::router
