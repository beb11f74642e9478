// Runs whole fleets under many seeds and watches every invariant: 200 seeds by default, fewer under
// sanitizers, any number by --seeds=N and --first_seed=S. A seed that breaks one prints itself, the
// command that runs it again, and its last events.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iostream>

#include "absl/strings/str_join.h"
#include "tests/sim/crash_note.h"
#include "tests/sim/seed_range.h"
#include "tests/sim/simulation.h"

namespace cairn::sim {
namespace {

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CAIRN_SIM_SANITIZED 1
#endif
#endif
#ifdef CAIRN_SIM_SANITIZED
constexpr uint64_t kSeedsDefault = 20;
#else
constexpr uint64_t kSeedsDefault = 200;
#endif
// Tests that share the seeds, so that they can run side by side.
constexpr uint64_t kShares = 4;
constexpr int kFailuresMax = 3;

std::string Describe(const SimResult& result) {
  return absl::StrCat(absl::StrJoin(result.last_lines, "\n"), "\nseed ", result.seed, " breaks ",
                      result.verdict.invariant, ": ", result.verdict.what,
                      "\nagain: ", ReplayCommand(result.seed));
}

class SimSeedsTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(SimSeedsTest, EverySeedHolds) {
  const SeedRange range = SeedRange::FromEnvironment(kSeedsDefault);
  // Every event of every seed, for a look at one.
  std::ofstream log;
  if (const char* path = std::getenv("CAIRN_SIM_LOG")) log.open(path, std::ios::app);
  int failures = 0;
  Workload::Tally tally;
  uint64_t steps = 0, lives = 0, committed = 0, digest = 0;
  for (uint64_t seed = range.first; seed < range.first + range.count; ++seed) {
    if (seed % kShares != GetParam()) continue;
    SimOptions options = SimOptions::Of(seed);
    if (log.is_open()) options.log_to = &log;
    const SimResult result = Simulation(options).Run();
    tally.ended += result.tally.ended;
    tally.blocks += result.tally.blocks;
    tally.hit_blocks += result.tally.hit_blocks;
    tally.fallbacks += result.tally.fallbacks;
    tally.uncached += result.tally.uncached;
    digest ^= result.digest;
    steps += result.steps;
    lives += result.node_lives;
    committed += result.blocks_committed;
    if (result.ok()) continue;
    ADD_FAILURE() << Describe(result);
    if (++failures == kFailuresMax) break;
  }
  std::cout << steps << " steps, " << lives << " lives of nodes, " << tally.ended << " requests, "
            << tally.hit_blocks << " of " << tally.blocks << " blocks hit, " << committed
            << " committed, " << tally.fallbacks << " fallbacks, " << tally.uncached
            << " without a cache, digest " << digest << "\n";
}

INSTANTIATE_TEST_SUITE_P(Share, SimSeedsTest, ::testing::Range(uint64_t{0}, kShares));

}  // namespace
}  // namespace cairn::sim
