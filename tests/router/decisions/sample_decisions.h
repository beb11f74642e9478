// Decisions for tests: told apart by a number, as a router could make them; and values of which no
// field is its default.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "router/decisions/decision.h"
#include "router/policy/policy_registry.h"

namespace cairn::router {

inline BookingId NumberedBooking(uint32_t number) {
  BookingId booking;
  for (size_t byte = 0; byte < 4; ++byte) {
    booking.bytes[byte] = static_cast<uint8_t>(number * 2654435761u >> 8 * byte);
  }
  booking.bytes[15] = 1;
  return booking;
}

inline ReplicaView FullView(uint64_t number) {
  return {.stable_hash = number + 1,
          .available = true,
          .holder_state = HolderState::kDegraded,
          .stale_share = 0.25,
          .age_seconds = 2.5,
          .queued_prefill_tokens = number + 2,
          .running_kv_tokens = number + 3,
          .requests = number + 4,
          .kv_tokens_max = number + 5,
          .prefill_tokens_per_second = 1234.5,
          .own_tokens = {number + 6, number + 7, number + 8},
          .coming_tokens = number + 9,
          .remote_tokens = number + 10,
          .remote_tokens_per_second = 99.5,
          .session_here = true,
          .lacking_label_seconds = 3.5};
}

inline RouteSnapshot FullSnapshot() {
  return {.replicas = {FullView(100), FullView(200)},
          .prompt_tokens = 5000,
          .output_tokens = 600,
          .block_tokens = 16,
          .transfer = {.own = {1e9, 2e5, 3e4}},
          .prefix_hash = 0xfedc'ba98'7654'3210,
          .random = 0x0123'4567'89ab'cdef,
          .sequence = 77,
          .deadline_seconds = 1.5};
}

inline RankedChoice FullChoice(size_t replica) {
  return {.replica = replica,
          .score = 10.125,
          .terms = {.queued_seconds = 1.5,
                    .compute_seconds = 2.5,
                    .fetch_seconds = 3.5,
                    .expected_ttft_seconds = 7.5,
                    .ramp_seconds = 0.5,
                    .label_seconds = 0.25,
                    .session_seconds = -0.75,
                    .trust = 0.5},
          .reason = RouteReason::kSession};
}

inline std::shared_ptr<const ReplicaNames> NumberedNames(uint32_t count) {
  ReplicaNames names;
  for (uint32_t id = 1; id <= count; ++id) {
    names.push_back({id, "worker-" + std::to_string(id), "node-" + std::to_string(id)});
  }
  return std::make_shared<const ReplicaNames>(std::move(names));
}

// As the default policy with default options decides over four replicas, whose loads and matches
// the number says.
inline Decision NumberedDecision(uint32_t number, std::shared_ptr<const ReplicaNames> names) {
  Decision decision;
  decision.booking = NumberedBooking(number);
  decision.fingerprint.bytes.fill(7);
  decision.policy = std::string(kDefaultRoutePolicy);
  decision.names = std::move(names);
  RouteSnapshot& snapshot = decision.snapshot;
  snapshot.prompt_tokens = 4096 + number % 7 * 512;
  snapshot.block_tokens = 16;
  snapshot.transfer = {.own = {1e9, 2e5, 3e4}};
  snapshot.prefix_hash = number * uint64_t{0x9e37'79b9'7f4a'7c15};
  snapshot.random = number * uint64_t{0xbf58'476d'1ce4'e5b9};
  snapshot.sequence = number;
  for (uint32_t i = 0; i < 4; ++i) {
    ReplicaView view;
    view.stable_hash = 1000 + i;
    view.available = (number + i) % 11 != 0;
    view.prefill_tokens_per_second = 15'000;
    view.queued_prefill_tokens = (number * 37 + i * 101) % 97 * 200;
    view.requests = (number + i) % 5;
    if (view.available) view.own_tokens[1] = (number * 13 + i * 7) % 9 * 512;
    snapshot.replicas.push_back(view);
    decision.replicas.push_back(i + 1);
  }
  const auto policy = MakeRoutePolicy(decision.policy, {});
  CAIRN_CHECK_OK(policy.status());
  decision.ranked = (*policy)->Rank(snapshot);
  return decision;
}

}  // namespace cairn::router
