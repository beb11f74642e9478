// EndpointSlice: the part of a discovery.k8s.io/v1 EndpointSlice that says which nodes there are.
// Values, and how they are read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"

namespace cairn::router {

struct SliceEndpoint {
  std::string host;  // The first of its addresses: no others mean anything.
  std::string uid;   // Of its pod; empty where it is none.
  bool ready = true;
  bool terminating = false;

  friend bool operator==(const SliceEndpoint&, const SliceEndpoint&) = default;
};

struct EndpointSlice {
  std::string name;
  bool is_ipv6 = false;
  uint16_t port = 0;  // 0: it does not have the port that is wanted.
  std::vector<SliceEndpoint> endpoints;

  friend bool operator==(const EndpointSlice&, const EndpointSlice&) = default;
};

// More than the API allows in one.
inline constexpr size_t kSliceEndpointsMax = 1000;

// `port_name` chooses among the slice's ports; empty: the only one. Conditions that are not said
// mean ready and not terminating. One of names (addressType FQDN) has no endpoints.
// INVALID_ARGUMENT for what is no EndpointSlice.
absl::StatusOr<EndpointSlice> ParseEndpointSlice(const nlohmann::json& object,
                                                 absl::string_view port_name);

}  // namespace cairn::router
