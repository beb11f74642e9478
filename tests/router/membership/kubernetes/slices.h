// EndpointSlices as an API server writes them, for tests.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace cairn::router {

struct TestEndpoint {
  std::string host;
  std::string uid = {};
  std::optional<bool> ready = true;
  std::optional<bool> terminating = false;
};

inline nlohmann::json SliceJson(const std::string& name, const std::vector<TestEndpoint>& endpoints,
                                const std::string& type = "IPv4", int port = 7070,
                                const std::string& service = "cairn") {
  nlohmann::json slice = {{"apiVersion", "discovery.k8s.io/v1"},
                          {"kind", "EndpointSlice"},
                          {"metadata",
                           {{"name", name},
                            {"namespace", "prod"},
                            {"labels", {{"kubernetes.io/service-name", service}}}}},
                          {"addressType", type},
                          {"endpoints", nlohmann::json::array()},
                          {"ports",
                           {{{"name", "metrics"}, {"port", 9090}, {"protocol", "TCP"}},
                            {{"name", "grpc"}, {"port", port}, {"protocol", "TCP"}}}}};
  for (const TestEndpoint& endpoint : endpoints) {
    nlohmann::json object = {{"addresses", {endpoint.host}},
                             {"conditions", nlohmann::json::object()}};
    if (endpoint.ready.has_value()) object["conditions"]["ready"] = *endpoint.ready;
    if (endpoint.terminating.has_value()) {
      object["conditions"]["terminating"] = *endpoint.terminating;
      object["conditions"]["serving"] = endpoint.ready.value_or(true);
      if (*endpoint.terminating) object["conditions"]["ready"] = false;
    }
    if (!endpoint.uid.empty()) {
      object["targetRef"] = {{"kind", "Pod"}, {"name", "pod"}, {"uid", endpoint.uid}};
    }
    slice["endpoints"].push_back(std::move(object));
  }
  return slice;
}

}  // namespace cairn::router
