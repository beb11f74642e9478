#include "router/policy/route_policy.h"

#include "common/base/check.h"

namespace cairn::router {

absl::string_view RouteReasonName(RouteReason reason) {
  switch (reason) {
    case RouteReason::kPrefix:
      return "PREFIX";
    case RouteReason::kRendezvous:
      return "RENDEZVOUS";
    case RouteReason::kLoad:
      return "LOAD";
    case RouteReason::kHolderOut:
      return "HOLDER_OUT";
    case RouteReason::kSession:
      return "SESSION";
  }
  CAIRN_CHECK_MSG(false, "a reason that does not exist");
  return "";
}

}  // namespace cairn::router
