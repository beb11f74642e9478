// The router's index, with what its feeds go through, while a trace is served.
//
// --trace FILE: a trace of any known format; without it, one that is generated. One thread takes in
// feeds and looks up in turn; index/index_rig.h says which code is in the measured path and
// index/index_workload.h what it goes through. Counted are blocks: of prompts looked up, stored and
// removed; `walked_` counts of a prompt only those that the lookup went to, up to its first miss.
// First everything is due at once, which gives the rate; then at half of that rate, which gives the
// times.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/replay/generated_trace.h"
#include "client/replay/open_trace.h"
#include "common/base/check.h"
#include "tests/bench/index/index_contention.h"
#include "tests/bench/index/index_memory.h"
#include "tests/bench/index/index_rig.h"
#include "tests/bench/index/index_workload.h"
#include "tests/bench/index/open_loop.h"
#include "tests/bench/suites.h"

namespace cairn::bench {
namespace {

constexpr size_t kHolders = 128;
constexpr uint32_t kShards = 64;
constexpr size_t kSlotsMax = size_t{16} << 20;
constexpr int kRounds = 5;
constexpr uint32_t kUsualKeysMin = 75;
constexpr uint32_t kUsualKeysMax = 125;
constexpr double kTimedShare = 0.5;  // Of the rate seen.
constexpr uint64_t kGeneratedRequests = 12'000;
constexpr uint32_t kGeneratedBlockTokens = 64;
constexpr uint32_t kRebuiltBlocksPerHolder = 8192;

absl::StatusOr<BlockTrace> ReadTrace(const std::string& path) {
  std::unique_ptr<replay::TraceReader> reader;
  if (path.empty()) {
    auto generated = replay::GeneratedTrace::Make({.requests = kGeneratedRequests});
    if (!generated.ok()) return generated.status();
    reader = *std::move(generated);
  } else {
    auto opened = replay::OpenTrace(path);
    if (!opened.ok()) return opened.status();
    reader = *std::move(opened);
  }
  return BlockTrace::Read(reader.get(), {.block_tokens = kGeneratedBlockTokens});
}

struct Served {
  OpenLoopResult loop;
  uint64_t matched = 0;  // Blocks, by the longest match of each lookup.
  uint64_t walked = 0;
  std::vector<uint32_t> walked_by_lookup;
};

// Each request is two steps: its lookup, then what its holder says.
Served Serve(const IndexWorkload& workload, double steps_per_second) {
  IndexRig rig(kHolders, kShards, kSlotsMax);
  Served served;
  served.loop = RunOpenLoop(2 * workload.requests().size(), steps_per_second, [&](size_t step) {
    const IndexWorkload::Request& request = workload.requests()[step / 2];
    if (step % 2 == 0) {
      const uint32_t matched = rig.Lookup(workload.KeysOf(request));
      served.matched += matched;
      served.walked_by_lookup.push_back(std::min(matched + 1, request.keys));
      served.walked += served.walked_by_lookup.back();
      return;
    }
    for (const IndexWorkload::Batch& batch : workload.BatchesOf(request)) {
      rig.Feed(batch.holder, batch.shard, workload.KeysOf(batch), workload.HeldOf(batch));
    }
  });
  CAIRN_CHECK(rig.slot_count() == workload.stored() - workload.removed());
  return served;
}

std::vector<uint32_t> EveryOther(const std::vector<uint32_t>& values, size_t first) {
  std::vector<uint32_t> some;
  for (size_t i = first; i < values.size(); i += 2) some.push_back(values[i]);
  return some;
}

// Times of the lookups of prompts of about 100 blocks.
std::vector<uint32_t> OfUsualPrompts(const IndexWorkload& workload, const Served& served) {
  std::vector<uint32_t> times;
  for (size_t i = 0; i < workload.requests().size(); ++i) {
    const uint32_t keys = workload.requests()[i].keys;
    if (keys >= kUsualKeysMin && keys <= kUsualKeysMax) {
      times.push_back(served.loop.service_ns[2 * i]);
    }
  }
  return times;
}

double LookupP99Us(const Served& served) {
  return PercentileUs(EveryOther(served.loop.service_ns, 0), 0.99);
}

// Of a few rounds, that in which a neighbour on the machine did the least.
Served LeastDisturbed(const IndexWorkload& workload, double steps_per_second, JsonReport* report) {
  std::vector<Served> rounds;
  for (int round = 0; round < kRounds; ++round) {
    rounds.push_back(Serve(workload, steps_per_second));
  }
  std::sort(rounds.begin(), rounds.end(),
            [](const Served& a, const Served& b) { return LookupP99Us(a) < LookupP99Us(b); });
  report->Add("lookup_p99_us_median_round", LookupP99Us(rounds[kRounds / 2]));
  return std::move(rounds.front());
}

void AddRates(const IndexWorkload& workload, JsonReport* report) {
  std::vector<Served> rounds;
  for (int round = 0; round < kRounds; ++round) {
    rounds.push_back(Serve(workload, 0));
    CAIRN_CHECK(rounds.back().matched == rounds.front().matched);
  }
  std::sort(rounds.begin(), rounds.end(),
            [](const Served& a, const Served& b) { return a.loop.seconds < b.loop.seconds; });
  const Served& median = rounds[kRounds / 2];
  const double seconds = median.loop.seconds;
  const auto records = static_cast<double>(workload.record_count());
  const double requested = static_cast<double>(workload.key_count()) + records;
  report->Add("block_ops_per_second", requested / seconds);
  report->Add("block_ops_per_second_least", requested / rounds.back().loop.seconds);
  report->Add("walked_block_ops_per_second",
              (static_cast<double>(median.walked) + records) / seconds);
  report->Add("matched_share",
              static_cast<double>(median.matched) / static_cast<double>(workload.key_count()));
  const double steps_per_second =
      kTimedShare * static_cast<double>(2 * workload.requests().size()) / seconds;
  const Served timed = LeastDisturbed(workload, steps_per_second, report);
  for (const auto& [name, first] : {std::pair("lookup", size_t{0}), std::pair("feed", size_t{1})}) {
    const std::vector<uint32_t> service = EveryOther(timed.loop.service_ns, first);
    report->Add(absl::StrCat(name, "_p50_us"), PercentileUs(service, 0.5));
    report->Add(absl::StrCat(name, "_p99_us"), PercentileUs(service, 0.99));
    report->Add(absl::StrCat(name, "_wait_p99_us"),
                PercentileUs(EveryOther(timed.loop.queue_wait_ns, first), 0.99));
  }
  report->Add("lookup_100_blocks_p99_us", PercentileUs(OfUsualPrompts(workload, timed), 0.99));
  // Blocks, where the percentiles of times are thousands of their unit.
  report->Add("lookup_walked_p50_blocks", PercentileUs(timed.walked_by_lookup, 0.5) * 1e3);
  report->Add("lookup_walked_p99_blocks", PercentileUs(timed.walked_by_lookup, 0.99) * 1e3);
  report->Add("timed_steps_per_second", steps_per_second);
  report->Add("issue_lag_p99_us", PercentileUs(timed.loop.issue_lag_ns, 0.99));
}

// All holders' snapshots into an index that has nothing.
void AddRebuild(JsonReport* report) {
  std::vector<std::vector<BlockKey>> shards(kShards);
  for (uint64_t i = 0; i < kRebuiltBlocksPerHolder; ++i) {
    const BlockKey key = KeyOfNumber(i);
    shards[key.bytes[0] % kShards].push_back(key);
  }
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    IndexRig rig(kHolders, kShards, kSlotsMax);
    double seconds = 0;
    for (size_t holder = 0; holder < kHolders; ++holder) {
      // Other keys for each holder, in the same shards.
      for (std::vector<BlockKey>& keys : shards) {
        for (BlockKey& key : keys) key.bytes[8] = static_cast<uint8_t>(holder);
      }
      const int64_t began = NowNs();
      for (uint32_t shard = 0; shard < kShards; ++shard) {
        rig.Snapshot(static_cast<router::HolderIndex>(holder), shard, shards[shard]);
      }
      seconds += static_cast<double>(NowNs() - began) / 1e9;
    }
    best = std::max(best, kHolders * kRebuiltBlocksPerHolder / seconds);
  }
  report->Add("rebuild_blocks_per_second", best);
}

}  // namespace

absl::Status RunIndexSuite(const SuiteOptions& options, JsonReport* report) {
  const absl::StatusOr<BlockTrace> trace = ReadTrace(options.trace);
  if (!trace.ok()) return trace.status();
  const IndexWorkload workload =
      IndexWorkload::Make(*trace, {.holders = kHolders, .shards = kShards});
  if (workload.requests().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(options.trace, ": no prompt has a full block"));
  }
  const auto requests = static_cast<double>(workload.requests().size());
  report->Add("requests", requests);
  report->Add("blocks_per_prompt", static_cast<double>(workload.key_count()) / requests);
  report->Add("blocks_stored", static_cast<double>(workload.stored()));
  report->Add("blocks_removed", static_cast<double>(workload.removed()));
  report->Add("records_per_batch", static_cast<double>(workload.record_count()) /
                                       static_cast<double>(workload.batch_count()));
  AddIndexMemory(report);
  AddRates(workload, report);
  AddRebuild(report);
  return AddIndexContention(workload, report);
}

}  // namespace cairn::bench
