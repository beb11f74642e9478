#include "tests/sim/invariants/quiet_leaves_nothing.h"

#include "absl/strings/str_cat.h"

namespace cairn::sim {
namespace {

void AddIf(uint64_t count, const std::string& whose, const char* what, std::string* left) {
  if (count > 0) absl::StrAppend(left, whose, ": ", count, " ", what, "; ");
}

void AddNode(const SimNode& node, std::string* left) {
  const std::string name = NodeName(node.life());
  const node::StoreStatus status = node.store()->Status();
  AddIf(status.pins, name, "pins", left);
  AddIf(status.pinned_bytes, name, "bytes pinned", left);
  AddIf(status.leases, name, "leases", left);
  AddIf(status.tokens, name, "tokens", left);
  AddIf(status.reserved_bytes, name, "bytes reserved", left);
  for (const node::TenantStatus& tenant : node.store()->Tenants()) {
    AddIf(tenant.leased_bytes, name, "bytes leased", left);
  }
  AddIf(node.in_flight().bytes, name, "bytes in flight", left);
  AddIf(node.in_flight().waiting, name, "writers waiting", left);
  AddIf(node.waiting_lookups(), name, "lookups waiting", left);
  AddIf(node.FeedsAreIdle() ? 0 : 1, name, "feeds that have something to send", left);
}

void AddRouter(const SimRouter& router, size_t nodes, std::string* left) {
  const router::RouterCore::Counters counters = router.core()->counters();
  AddIf(counters.bookings.booked - counters.bookings.ended - counters.bookings.expired,
        "the router", "bookings", left);
  AddIf(counters.speculative_marks, "the router", "speculative marks", left);
  for (const router::ReplicaStatus& replica : router.core()->ListReplicas()) {
    AddIf(replica.load.prefill_tokens, replica.worker_address, "prefill tokens booked", left);
    AddIf(replica.load.kv_tokens, replica.worker_address, "KV tokens booked", left);
    AddIf(replica.load.requests, replica.worker_address, "requests booked", left);
  }
  for (size_t place = 0; place < nodes; ++place) {
    const router::HolderState state =
        router.core()->StateOf(static_cast<router::HolderIndex>(place));
    if (state == router::HolderState::kExact && router.UpToDate(place)) continue;
    absl::StrAppend(left, "node-", place, " is ", router::HolderStateName(state),
                    " at the router; ");
  }
}

}  // namespace

std::string QuietLeavesNothing::WhatIsLeft(const FleetView& fleet) {
  std::string left;
  for (size_t place = 0; place < fleet.node_count(); ++place) {
    if (const SimNode* node = fleet.node(place)) {
      AddNode(*node, &left);
    } else {
      absl::StrAppend(&left, "node-", place, " is down; ");
    }
  }
  if (fleet.router() == nullptr) return absl::StrCat(left, "the router is down");
  AddRouter(*fleet.router(), fleet.node_count(), &left);
  return left;
}

void QuietLeavesNothing::OnQuiet() {
  if (const std::string left = WhatIsLeft(fleet()); !left.empty()) Violated(left);
}

}  // namespace cairn::sim
