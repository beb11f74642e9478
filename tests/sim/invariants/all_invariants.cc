#include "tests/sim/invariants/all_invariants.h"

#include "tests/sim/invariants/dead_nodes_leave_routes.h"
#include "tests/sim/invariants/fences_hold.h"
#include "tests/sim/invariants/foreign_ids_refused.h"
#include "tests/sim/invariants/index_equals_listing.h"
#include "tests/sim/invariants/leases_hold.h"
#include "tests/sim/invariants/matches_were_there.h"
#include "tests/sim/invariants/no_crossing_of_tenants.h"
#include "tests/sim/invariants/no_half_written_visible.h"
#include "tests/sim/invariants/no_hole_counted.h"
#include "tests/sim/invariants/no_reuse_under_reader.h"
#include "tests/sim/invariants/no_wrong_bytes.h"
#include "tests/sim/invariants/quiet_leaves_nothing.h"
#include "tests/sim/invariants/removed_stays_gone.h"
#include "tests/sim/invariants/same_request_same_answer.h"

namespace cairn::sim {

std::vector<std::unique_ptr<Invariant>> AllInvariants(const Scene* scene,
                                                      const Bounds::Limits& limits) {
  std::vector<std::unique_ptr<Invariant>> all;
  all.push_back(std::make_unique<NoWrongBytes>(scene));
  all.push_back(std::make_unique<NoHalfWrittenVisible>(scene));
  all.push_back(std::make_unique<NoReuseUnderReader>(scene));
  all.push_back(std::make_unique<LeasesHold>(scene));
  all.push_back(std::make_unique<NoHoleCounted>(scene));
  all.push_back(std::make_unique<RemovedStaysGone>(scene));
  all.push_back(std::make_unique<FencesHold>(scene));
  all.push_back(std::make_unique<NoCrossingOfTenants>(scene));
  all.push_back(std::make_unique<ForeignIdsRefused>(scene));
  all.push_back(std::make_unique<SameRequestSameAnswer>(scene));
  all.push_back(std::make_unique<DeadNodesLeaveRoutes>(scene));
  all.push_back(std::make_unique<MatchesWereThere>(scene));
  all.push_back(std::make_unique<Bounds>(scene, limits));
  all.push_back(std::make_unique<IndexEqualsListing>(scene));
  all.push_back(std::make_unique<QuietLeavesNothing>(scene));
  return all;
}

}  // namespace cairn::sim
