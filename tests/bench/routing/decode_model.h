// DecodeModel: a trace's requests, with their answers, sent by a policy of the router's own to
// replicas that batch continuously (replica_engine.h); for ranking policies, not for promising
// seconds.
//
// - Replicas differ: a share of them, spread evenly, has a fraction of the others' speed. The
//   trace's clock is set so that prefill of what an unlimited cache would miss takes `load` of all
//   the prefill that the replicas can do together.
// - The policy sees what a router would: blocks in each node's cache at once, those that booked
//   requests are about to write, booked tokens and requests (router/booking: prefill until the
//   first token, KV until the end, the answer's length as announced), the KV that there is, and
//   for each replica a prefill rate that it learned from that replica's first tokens, beginning at
//   the fast ones' rate.
// - ttft: from arrival to the first token. tpot: seconds from the first token to the last over the
//   tokens after the first; of answers of two tokens and more. p50, p99: sorted[floor(q n)].
// - goodput: requests within both SLOs, over the span from the first arrival to the last end.
// - hit: blocks found when a request first entered over blocks asked for. busiest_over_mean:
//   prefilled tokens over the replica's speed, the largest over the mean. preemptions: entries that
//   were undone for want of KV.
// - Ties and hashes differ by seed: of each figure the median over the seeds.
#pragma once

#include <cstdint>

#include "router/policy/route_policy.h"
#include "tests/bench/eviction/block_trace.h"

namespace cairn::bench {

struct DecodeOptions {
  uint32_t nodes = 8;
  uint32_t capacity = 0;  // Blocks of each node's cache.
  double load = 0.5;
  double slow_share = 0.5;
  double slow_speed = 0.5;
  uint64_t kv_tokens_max = 400'000;
  double slo_ttft_s = 5;
  double slo_tpot_s = 0.1;
  uint32_t seeds = 9;
};

struct DecodeFigures {
  double ttft_mean_s = 0;
  double ttft_p50_s = 0;
  double ttft_p99_s = 0;
  double tpot_mean_s = 0;
  double tpot_p99_s = 0;
  double goodput_per_second = 0;
  double completions = 0;
  double preemptions = 0;
  double hit = 0;
  double busiest_over_mean = 0;
  double kv_tokens_peak = 0;      // Of one replica.
  double slow_request_share = 0;  // Requests that went to slow replicas.
};

// Seconds of the model for one second of the trace.
double DecodeClock(const BlockTrace& trace, const DecodeOptions& options);

// Prompt and answer of the longest request: what kv_tokens_max must hold.
uint64_t LongestKvTokens(const BlockTrace& trace);

// REQUIRES: a trace with requests; nodes, capacity, load, slow_speed, SLOs and seeds above zero;
// slow_share at most 1; LongestKvTokens fits.
DecodeFigures SimulateDecode(const BlockTrace& trace, const router::RoutePolicy& policy,
                             const DecodeOptions& options);

}  // namespace cairn::bench
