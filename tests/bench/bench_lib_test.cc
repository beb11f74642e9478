// The pieces that every suite stands on: the report is one flat JSON object that reads back; the
// ratio compares like with like, on work whose relation is known by construction.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/bench/json_report.h"
#include "tests/bench/ratio.h"
#include "tests/bench/suites.h"

namespace cairn::bench {
namespace {

using ::testing::HasSubstr;

TEST(JsonReportTest, IsOneFlatObjectThatReadsBack) {
  JsonReport report;
  report.Add("ratio_16", 0.75);
  report.Add("machine", "says \"hi\"\n");
  const nlohmann::json json = nlohmann::json::parse(report.ToJson());
  EXPECT_EQ(json.size(), 2u);
  EXPECT_EQ(json.at("ratio_16").get<double>(), 0.75);
  EXPECT_EQ(json.at("machine").get<std::string>(), "says \"hi\"\n");
  EXPECT_EQ(report.Number("ratio_16"), 0.75);
}

TEST(JsonReportTest, NumbersReadBackExactly) {
  JsonReport report;
  report.Add("blocks", 94310647);
  report.Add("share", 0.1 + 0.2);
  const nlohmann::json json = nlohmann::json::parse(report.ToJson());
  EXPECT_EQ(json.at("blocks").get<uint64_t>(), 94310647u);
  EXPECT_EQ(json.at("share").get<double>(), 0.1 + 0.2);
}

TEST(JsonReportTest, AnEmptyReportIsAnEmptyObject) {
  EXPECT_TRUE(nlohmann::json::parse(JsonReport().ToJson()).empty());
}

TEST(JsonReportTest, WritesAFileAndSaysWhyItCannot) {
  JsonReport report;
  report.Add("x", 1);
  const std::string path = ::testing::TempDir() + "/cairn_json_report_test.json";
  ASSERT_TRUE(report.WriteTo(path).ok());
  std::ifstream file(path);
  EXPECT_EQ(nlohmann::json::parse(file).at("x").get<double>(), 1);
  const absl::Status status = report.WriteTo("/nowhere/at/all.json");
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nowhere/at/all.json: No such file"));
}

TEST(JsonReportDeathTest, AKeyIsThereOnce) {
  JsonReport report;
  report.Add("x", 1);
  EXPECT_DEATH(report.Add("x", 2), "x");
}

TEST(RatioTest, CallsBothEquallyOftenAndKeepsToItsBounds) {
  int products = 0, floors = 0;
  RatioOptions options;
  options.rounds_min = 3;
  options.rounds_max = 3;
  const RatioResult result = MeasureRatio([&] { ++products; }, [&] { ++floors; }, options);
  EXPECT_EQ(result.rounds, 3);
  EXPECT_EQ(products, 4);
  EXPECT_EQ(floors, 4);
}

TEST(RatioTest, StopsAtTheBudgetOnceTheLeastRoundsAreDone) {
  RatioOptions options;
  options.rounds_min = 5;
  options.budget = absl::ZeroDuration();
  EXPECT_EQ(MeasureRatio([] {}, [] {}, options).rounds, 5);
}

TEST(RatioTest, TwiceTheWorkIsHalfTheRatio) {
  volatile uint64_t sink = 0;
  const auto work = [&](int count) {
    for (int i = 0; i < count; ++i) sink = sink + 1;
  };
  const RatioResult result =
      MeasureRatio([&] { work(100'000); }, [&] { work(50'000); }, RatioOptions{.rounds_max = 200});
  EXPECT_GT(result.ratio, 0.3);
  EXPECT_LT(result.ratio, 0.8);
}

TEST(SuitesTest, HaveDistinctNamesAndALineEach) {
  std::set<std::string> names;
  for (const Suite& suite : AllSuites()) {
    EXPECT_TRUE(names.insert(std::string(suite.name)).second) << suite.name;
    EXPECT_FALSE(suite.what.empty());
    EXPECT_NE(suite.run, nullptr);
  }
  EXPECT_TRUE(names.count("hash"));
}

}  // namespace
}  // namespace cairn::bench
