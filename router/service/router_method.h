// The methods of cairn.v1.Router, as they are counted.
#pragma once

#include <array>
#include <cstddef>

#include "absl/strings/string_view.h"

namespace cairn::router {

enum class RouterMethod : size_t { kRoute, kLookupPrefix, kReportOutcome, kListReplicas };

// By the methods' numbers.
inline constexpr std::array<absl::string_view, 4> kRouterMethodNames = {
    "Route", "LookupPrefix", "ReportOutcome", "ListReplicas"};

}  // namespace cairn::router
