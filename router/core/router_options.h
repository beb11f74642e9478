// What a router is configured with. A value; RouterCore::Make checks it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "router/booking/booking_ledger.h"
#include "router/booking/session_memory.h"
#include "router/feed/holder_feed.h"
#include "router/index/speculative_blocks.h"
#include "router/policy/route_snapshot.h"

namespace cairn::router {

struct RouterOptions {
  // Where the nodes' feeds are, at first.
  std::vector<std::string> holder_addresses;
  // A source of nodes says more: not ready before RouterCore::MembersKnown, and a holder.
  bool members_to_come = false;
  // A replica stays listed so long after its node's address was removed, and as long as no holder
  // lives: the worker may go on, or another node come up beside it.
  absl::Duration departed_for = absl::Minutes(1);

  FeedOptions feed;
  SpeculationOptions speculation;
  BookingOptions booking;
  SessionOptions sessions;

  // Tokens a second from the own node's device, host and disk, for KV of 128 KiB a token.
  TransferRates transfer = {.own = {1e9, 200'000, 25'000}};
  // From another node on the same host, and on another one. 0: workers do not read from there.
  double same_host_tokens_per_second = 0;
  double remote_tokens_per_second = 0;
  // KV tokens that a worker's own memory holds, where its node does not say; nothing: not known.
  std::optional<uint64_t> replica_kv_tokens;

  // Ready after so long even when snapshots are missing.
  absl::Duration ready_wait = absl::Seconds(10);
  // The guarded clock's: how far time may go from one Tick to the next. Under feed.degraded_after,
  // so that a late tick alone makes no holder silent.
  absl::Duration tick_advance_max = absl::Milliseconds(400);

  // Bounds.
  size_t slots_max = size_t{64} << 20;
  size_t partitions_max = size_t{1} << 16;
  size_t namespaces_max = size_t{1} << 16;
  size_t replicas_per_answer_max = 64;
  size_t answers_remembered_max = size_t{1} << 14;
  absl::Duration answers_remembered_for = absl::Minutes(1);
};

}  // namespace cairn::router
