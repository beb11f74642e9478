#include "tests/sim/invariants/same_request_same_answer.h"

#include <google/protobuf/message.h>

#include "absl/strings/str_cat.h"

namespace cairn::sim {
namespace {

std::string RequestIdOf(const google::protobuf::Message& request) {
  using google::protobuf::DynamicCastToGenerated;
  if (const auto* lookup = DynamicCastToGenerated<v1::LookupRequest>(&request)) {
    return lookup->request_id();
  }
  if (const auto* reserve = DynamicCastToGenerated<v1::ReserveRequest>(&request)) {
    return reserve->request_id();
  }
  if (const auto* route = DynamicCastToGenerated<v1::RouteRequest>(&request)) {
    return route->request_id();
  }
  return "";
}

}  // namespace

void SameRequestSameAnswer::Check(const std::string& kind, const SeenCall& call) {
  const std::string id = RequestIdOf(call.request);
  if (id.empty() || !call.status.ok()) return;
  const std::string answer = call.response.SerializeAsString();
  const auto [first, is_first] =
      answers_.emplace(Asked(kind, call.server, call.caller.id, call.method, id), answer);
  if (is_first || first->second == answer) return;
  Violated(absl::StrCat("the ", kind, " in place ", call.server.place, " answers ",
                        MethodName(call.method), " ", ShortHex(id), " twice, differently"));
}

}  // namespace cairn::sim
