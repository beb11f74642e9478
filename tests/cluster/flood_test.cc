// A thousand clients, each with a connection of its own, send 8 MiB at once into a node that may
// hold 1 GiB and pools 256 MiB. The kernel's own high-water mark of the process is what counts.
#include "tests/cluster/flood.h"

#include <iostream>

#include "gmock/gmock.h"

namespace cairn::testing {
namespace {

constexpr uint32_t kClients = 1000;

FloodResult Flood(bool blind, uint32_t slow_percent = 0) {
  FloodOptions options;
  options.programs = CAIRN_BIN_DIR;
  options.clients = kClients;
  options.blind = blind;
  options.slow_percent = slow_percent;
  const absl::StatusOr<FloodResult> result = RunFlood(options);
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  std::cout << ToText(*result);
  EXPECT_GT(result->samples, 0u);
  const double share =
      static_cast<double>(result->rss_peak_bytes) / static_cast<double>(result->memory_limit_bytes);
  EXPECT_LE(share, 1.05) << "of the memory limit";
  EXPECT_GT(result->rss_peak_bytes, 0u);
  EXPECT_EQ(result->failed, 0u) << result->failure;
  EXPECT_GT(result->lookups, 0u);
  EXPECT_EQ(result->lookups_failed, 0u);
  EXPECT_GT(result->health_asked, 0u);
  EXPECT_EQ(result->health_failed, 0u) << "of " << result->health_asked;
  return *result;
}

TEST(FloodTest, EachOfAThousandPutsLandsOrIsRefusedWithADelayWithinTheMemoryLimit) {
  const FloodResult result = Flood(/*blind=*/false);
  EXPECT_EQ(result.landed + result.refused, kClients);
  // More than the pool holds at once: blocks made room for each other.
  EXPECT_GT(result.landed, 32u);
}

// Slow ones hold what was admitted for them, and their blocks, for longer.
TEST(FloodTest, SlowClientsAmongFastOnesTakeNoMoreMemory) {
  const FloodResult result = Flood(/*blind=*/false, /*slow_percent=*/25);
  EXPECT_EQ(result.landed + result.refused, kClients);
  EXPECT_GT(result.landed, 32u);
}

TEST(FloodTest, PayloadThatNobodyAskedForStaysOutOfMemory) {
  const FloodResult result = Flood(/*blind=*/true);
  EXPECT_EQ(result.unknown + result.refused, kClients);
}

}  // namespace
}  // namespace cairn::testing
