#include "tests/sim/invariants/bounds.h"

#include "absl/strings/str_cat.h"

namespace cairn::sim {

void Bounds::OnLook() {
  for (size_t place = 0; place < fleet().node_count(); ++place) {
    if (const SimNode* node = fleet().node(place)) CheckNode(*node);
  }
  if (const SimRouter* router = fleet().router()) CheckRouter(*router);
}

void Bounds::CheckNode(const SimNode& node) const {
  const std::string name = NodeName(node.life());
  if (const absl::Status audit = node.store()->Audit(); !audit.ok()) {
    Violated(absl::StrCat(name, ": ", audit.message()));
  }
  const node::StoreStatus status = node.store()->Status();
  AtMost(name, "bytes used", status.host_used_bytes, status.host_bytes);
  AtMost(name, "bytes pinned", status.pinned_bytes, status.host_used_bytes);
  AtMost(name, "bytes reserved", status.reserved_bytes, status.host_bytes / 2);
  AtMost(name, "bytes of the index", status.index_bytes, limits_.store.index_bytes_max);
  AtMost(name, "leases", status.leases, limits_.store.leases_max);
  AtMost(name, "tokens", status.tokens, limits_.store.tokens_max);
  AtMost(name, "watchers", status.watchers, node::FeedHub::kWatchersMax);
  AtMost(name, "bytes in flight", node.in_flight().bytes, limits_.in_flight_bytes_max);
  uint64_t charged = 0;
  uint64_t leased = 0;
  for (const node::TenantStatus& tenant : node.store()->Tenants()) {
    charged += tenant.charged_bytes;
    leased += tenant.leased_bytes;
  }
  AtMost(name, "bytes leased", leased, status.host_bytes / 2);
  if (charged != status.host_used_bytes) {
    Violated(absl::StrCat(name, ": ", status.host_used_bytes, " bytes are used, and tenants are ",
                          "charged ", charged));
  }
}

void Bounds::CheckRouter(const SimRouter& router) const {
  const router::RouterCore::Counters counters = router.core()->counters();
  AtMost("the router", "index slots", counters.index_slots, limits_.router.slots_max);
  AtMost("the router", "speculative marks", counters.speculative_marks,
         limits_.router.speculation.marks_max);
  AtMost("the router", "bookings",
         counters.bookings.booked - counters.bookings.ended - counters.bookings.expired,
         limits_.router.booking.bookings_max);
}

void Bounds::AtMost(const std::string& whose, const char* what, uint64_t is, uint64_t most) const {
  if (is > most) Violated(absl::StrCat(whose, ": ", is, " ", what, ", at most ", most));
}

}  // namespace cairn::sim
