// A filled report, read back from its JSON, and its table searched for what people look for.
#include "client/replay/replay_report.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "tests/client/replay/trace_file.h"

namespace cairn::replay {
namespace {

using ::testing::HasSubstr;

ReplayReport Sample() {
  ReplayReport report;
  report.requests = 12031;
  report.empty_requests = 2;
  report.failed_requests = 1;
  report.tokens_looked_up = 1000;
  report.hit_blocks = 7;
  report.hit_tokens = 370;
  report.ideal_hit_tokens = 400;
  report.lru_hit_blocks = 40644;
  report.lru_hit_tokens = 250;
  report.lru_capacity_blocks = 5859;
  report.hit_blocks_host = 7;
  report.busiest_over_mean = 1.25;
  report.route.p99 = absl::Microseconds(1500);
  report.elapsed = absl::Milliseconds(2500);
  return report;
}

TEST(ReplayReport, JsonIsOneFlatObjectWithTheseNames) {
  const auto json = nlohmann::json::parse(Sample().ToJson());
  std::set<std::string> names;
  for (const auto& [name, value] : json.items()) {
    EXPECT_TRUE(value.is_number()) << name;
    names.insert(name);
  }
  for (const char* name : {"requests",
                           "empty_requests",
                           "failed_requests",
                           "wrong_bytes",
                           "tokens_looked_up",
                           "hit_rate_tokens",
                           "ideal_hit_rate_tokens",
                           "lru_hit_rate_tokens",
                           "hit_blocks",
                           "lru_hit_blocks",
                           "stampede_computations",
                           "busiest_over_mean",
                           "hit_blocks_device",
                           "hit_blocks_host",
                           "hit_blocks_disk",
                           "route_p50_us",
                           "route_p99_us",
                           "lookup_p50_us",
                           "lookup_p99_us",
                           "get_p50_us",
                           "get_p99_us",
                           "put_p50_us",
                           "put_p99_us"}) {
    EXPECT_EQ(names.count(name), 1u) << name;
  }
}

TEST(ReplayReport, JsonHoldsTheValues) {
  const auto json = nlohmann::json::parse(Sample().ToJson());
  EXPECT_EQ(json["requests"], 12031);
  EXPECT_EQ(json["empty_requests"], 2);
  EXPECT_EQ(json["failed_requests"], 1);
  EXPECT_EQ(json["wrong_bytes"], 0);
  EXPECT_EQ(json["hit_rate_tokens"], 0.37);
  EXPECT_EQ(json["ideal_hit_rate_tokens"], 0.4);
  EXPECT_EQ(json["lru_hit_rate_tokens"], 0.25);
  EXPECT_EQ(json["lru_hit_blocks"], 40644);
  EXPECT_EQ(json["hit_blocks_host"], 7);
  EXPECT_EQ(json["busiest_over_mean"], 1.25);
  EXPECT_EQ(json["route_p99_us"], 1500);
  EXPECT_EQ(json["elapsed_s"], 2.5);
}

TEST(ReplayReport, RatesOfNothingAreZero) {
  const ReplayReport nothing;
  EXPECT_EQ(nothing.hit_rate_tokens(), 0);
  EXPECT_EQ(nlohmann::json::parse(nothing.ToJson())["ideal_hit_rate_tokens"], 0);
}

TEST(ReplayReport, TheTableShowsHitsBesideTheirLimits) {
  const std::string table = Sample().ToTable();
  for (const char* shown : {"12031", "0.3700 of tokens", "0.4000 of tokens", "LRU of 5859",
                            "0.2500 of tokens", "1.250", "1.500 ms p99", "2.5 s"}) {
    EXPECT_THAT(table, HasSubstr(shown));
  }
}

TEST(ReplayReport, WritesItsJsonOverWhatWasThere) {
  const TraceFile file(std::string(5000, 'x'));
  ASSERT_TRUE(Sample().WriteJson(file.path()).ok());
  std::ifstream written(file.path());
  std::stringstream text;
  text << written.rdbuf();
  EXPECT_EQ(text.str(), Sample().ToJson());
}

TEST(ReplayReport, SaysWhereItCouldNotWrite) {
  const absl::Status status = Sample().WriteJson("/nonexistent/report.json");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nonexistent/report.json"));
  EXPECT_EQ(ReplayReport::CheckPath("/nonexistent/report.json"), status);
  EXPECT_EQ(Sample().WriteJson("/dev/full").code(), absl::StatusCode::kDataLoss);
}

TEST(ReplayReport, CheckingAPathLeavesWhatIsThere) {
  const std::string path = ::testing::TempDir() + "/checked.json";
  ASSERT_TRUE(Sample().WriteJson(path).ok());
  EXPECT_TRUE(ReplayReport::CheckPath(path).ok());
  std::ifstream file(path);
  EXPECT_EQ(nlohmann::json::parse(file)["requests"], Sample().requests);
}

TEST(BusiestOverMean, ComparesTheBusiestWithTheMean) {
  EXPECT_EQ(BusiestOverMean({5, 5, 5}), 1);
  EXPECT_EQ(BusiestOverMean({0, 0, 9}), 3);
  EXPECT_EQ(BusiestOverMean({1, 3}), 1.5);
  EXPECT_EQ(BusiestOverMean({0, 0}), 0);
  EXPECT_EQ(BusiestOverMean({}), 0);
}

TEST(LatencySummary, HoldsTheQuantilesOfItsRecorder) {
  LatencyRecorder recorder;
  for (int i = 1; i <= 50; ++i) recorder.Record(absl::Nanoseconds(i));
  const LatencySummary summary = LatencySummary::Of(recorder);
  EXPECT_EQ(summary.p50, absl::Nanoseconds(25));
  EXPECT_EQ(summary.p99, absl::Nanoseconds(50));
}

}  // namespace
}  // namespace cairn::replay
