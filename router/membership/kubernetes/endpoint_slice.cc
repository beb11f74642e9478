#include "router/membership/kubernetes/endpoint_slice.h"

#include <arpa/inet.h>

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "router/membership/kubernetes/json_fields.h"

namespace cairn::router {
namespace {

using nlohmann::json;

constexpr int64_t kPortMax = 65'535;
// They have 36 by themselves.
constexpr size_t kUidBytesMax = 256;

// 0 when none has the name, or there are several and none was named.
uint16_t PortOf(const json& slice, absl::string_view port_name) {
  const json* const ports = FieldOf(slice, "ports");
  if (ports == nullptr || !ports->is_array()) return 0;
  if (port_name.empty() && ports->size() != 1) return 0;
  for (const json& port : *ports) {
    const std::string protocol = StringOf(port, "protocol");
    if (!protocol.empty() && protocol != "TCP") continue;
    if (!port_name.empty() && StringOf(port, "name") != port_name) continue;
    const int64_t number = IntOf(port, "port").value_or(0);
    if (number > 0 && number <= kPortMax) return static_cast<uint16_t>(number);
  }
  return 0;
}

bool IsAddress(const std::string& host, bool is_ipv6) {
  in6_addr ignored{};
  return inet_pton(is_ipv6 ? AF_INET6 : AF_INET, host.c_str(), &ignored) == 1 &&
         host.find('\0') == std::string::npos;
}

std::optional<SliceEndpoint> EndpointOf(const json& object, bool is_ipv6) {
  const json* const addresses = FieldOf(object, "addresses");
  if (addresses == nullptr || !addresses->is_array() || addresses->empty()) return std::nullopt;
  const json& first = addresses->front();
  if (!first.is_string()) return std::nullopt;
  SliceEndpoint endpoint;
  endpoint.host = first.get<std::string>();
  if (const json* const target = FieldOf(object, "targetRef"); target != nullptr) {
    endpoint.uid = StringOf(*target, "uid");
  }
  if (!IsAddress(endpoint.host, is_ipv6) || endpoint.uid.size() > kUidBytesMax) {
    return std::nullopt;
  }
  if (const json* const conditions = FieldOf(object, "conditions"); conditions != nullptr) {
    endpoint.ready = BoolOf(*conditions, "ready").value_or(true);
    endpoint.terminating = BoolOf(*conditions, "terminating").value_or(false);
  }
  return endpoint;
}

}  // namespace

absl::StatusOr<EndpointSlice> ParseEndpointSlice(const json& object, absl::string_view port_name) {
  EndpointSlice slice;
  slice.name = MetadataOf(object, "name");
  const std::string kind = StringOf(object, "kind");
  const std::string type = StringOf(object, "addressType");
  // Elements of a list do not say their kind.
  if (slice.name.empty() || (!kind.empty() && kind != "EndpointSlice") || type.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("an object of kind '", kind, "' named '",
                                                   slice.name, "' is no EndpointSlice"));
  }
  if (type != "IPv4" && type != "IPv6") return slice;
  slice.is_ipv6 = type == "IPv6";
  slice.port = PortOf(object, port_name);
  const json* const endpoints = FieldOf(object, "endpoints");
  if (endpoints == nullptr || !endpoints->is_array()) return slice;
  if (endpoints->size() > kSliceEndpointsMax) {
    return absl::InvalidArgumentError(absl::StrCat("the EndpointSlice ", slice.name, " has ",
                                                   endpoints->size(), " endpoints; at most ",
                                                   kSliceEndpointsMax, " are allowed"));
  }
  for (const json& endpoint : *endpoints) {
    if (std::optional<SliceEndpoint> read = EndpointOf(endpoint, slice.is_ipv6); read.has_value()) {
      slice.endpoints.push_back(*std::move(read));
    }
  }
  return slice;
}

}  // namespace cairn::router
