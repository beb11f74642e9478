#include "tests/sim/network/packet.h"

namespace cairn::sim {

const char* MethodName(Method method) {
  switch (method) {
    case Method::kRoute:
      return "Route";
    case Method::kLookupPrefix:
      return "LookupPrefix";
    case Method::kReportOutcome:
      return "ReportOutcome";
    case Method::kRegisterNamespace:
      return "RegisterNamespace";
    case Method::kRetireNamespace:
      return "RetireNamespace";
    case Method::kClearScope:
      return "ClearScope";
    case Method::kLookup:
      return "Lookup";
    case Method::kGetLease:
      return "GetLease";
    case Method::kRenewLease:
      return "RenewLease";
    case Method::kEndLease:
      return "EndLease";
    case Method::kGet:
      return "Get";
    case Method::kReserve:
      return "Reserve";
    case Method::kWrite:
      return "Write";
    case Method::kCommit:
      return "Commit";
    case Method::kAbort:
      return "Abort";
    case Method::kReportMismatch:
      return "ReportMismatch";
    case Method::kDelete:
      return "Delete";
    case Method::kWatchBlocks:
      return "WatchBlocks";
  }
  return "none";
}

}  // namespace cairn::sim
