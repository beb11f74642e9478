// cairnctl replay as a person uses it, through the function that main calls: generated requests and
// a small trace against the client's fake node, and command lines that make no sense.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "client/ctl/command.h"
#include "client/replay/replay_namespace.h"
#include "tests/client/cpp/fake_node.h"

namespace cairn::ctl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

struct Ran {
  int code = 0;
  std::string out;
  std::string err;
};

Ran RunReplay(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "replay");
  std::istringstream in;
  std::ostringstream out;
  std::ostringstream err;
  const int code = RunCairnctl(arguments, {&in, &out}, &err);
  return {code, out.str(), err.str()};
}

std::string FileOf(const std::string& name, const std::string& content) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/", name);
  std::ofstream(path) << content;
  return path;
}

TEST(ReplayCommandTest, ReplaysGeneratedRequestsAndWritesTheReport) {
  const cairn::testing::FakeNode node(*replay::MakeReplayNamespace(64, 1024));
  const std::string report = FileOf("report.json", "");
  const Ran ran = RunReplay({"--node", node.target(), "--requests", "20", "--workers", "1",
                             "--block-bytes", "1024", "--block-tokens", "64", "--json", report});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("requests                             20\n"));
  std::ifstream file(report);
  const Json json = Json::parse(file);
  EXPECT_EQ(json["requests"], 20);
  EXPECT_EQ(json["failed_requests"], 0);
  EXPECT_EQ(json["wrong_bytes"], 0);
  EXPECT_EQ(json["hit_blocks"], json["ideal_hit_blocks"]);
}

TEST(ReplayCommandTest, PrintsTheReportAsJson) {
  const cairn::testing::FakeNode node(*replay::MakeReplayNamespace(64, 1024));
  const std::string trace = FileOf("two.txt", "0.0 130 5 0 1-2\n1.0 130 5 0 1-2\n");
  const Ran ran = RunReplay({"--node", node.target(), "--trace", trace, "--workers", "1",
                             "--block-bytes", "1024", "--lru-blocks", "9", "--output", "json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json["tokens_looked_up"], 260);
  EXPECT_EQ(json["hit_blocks"], 2);
  EXPECT_EQ(json["lru_hit_blocks"], 2);
  EXPECT_EQ(json["lru_capacity_blocks"], 9);
}

TEST(ReplayCommandTest, APlanSaysWhatTheTraceAsksForAndAsksNobody) {
  const std::string trace = FileOf("plan.txt", "0.0 130 5 0 1-2\n1.0 200 5 0 1-3\n2.0 0 0 0\n");
  const Ran ran = RunReplay({"--plan", "--trace", trace, "--output", "json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json["requests"], 2);
  EXPECT_EQ(json["empty_requests"], 1);
  EXPECT_EQ(json["block_tokens"], 64);
  EXPECT_EQ(json["distinct_blocks"], 3);
  EXPECT_EQ(json["distinct_bytes"], 3 * 4096);
  EXPECT_EQ(json["ideal_hit_blocks"], 2);
}

TEST(ReplayCommandTest, WhatCannotBeReadOrReachedEndsWith1) {
  const Ran no_trace = RunReplay({"--trace", "/nonexistent"});
  EXPECT_EQ(no_trace.code, 1);
  EXPECT_THAT(no_trace.err, HasSubstr("/nonexistent"));
  const Ran no_node = RunReplay({"--node", "127.0.0.1:1"});
  EXPECT_EQ(no_node.code, 1);
  EXPECT_THAT(no_node.err, HasSubstr("127.0.0.1:1"));
  EXPECT_THAT(no_node.out, IsEmpty());
}

TEST(ReplayCommandTest, AReportThatCannotBeWrittenIsSaidBeforeTheReplay) {
  const Ran ran = RunReplay({"--node", "127.0.0.1:1", "--json", "/nonexistent/report.json"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("/nonexistent/report.json: No such file"));
  EXPECT_THAT(ran.err, Not(HasSubstr("listening")));
}

TEST(ReplayCommandTest, OutputThatDoesNotArriveIsAFailure) {
  std::istringstream in;
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  for (const char* flag : {"--plan", "--help"}) {
    std::ostringstream err;
    EXPECT_EQ(RunCairnctl({"replay", flag, "--requests", "2"}, {&in, &out}, &err), 1);
    EXPECT_THAT(err.str(), HasSubstr("cairnctl replay: the output cannot be written"));
  }
}

TEST(ReplayCommandTest, CommandLinesThatMakeNoSenseEndWith2AndUsage) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"--workers", "0"},
           {"--workers", "many"},
           {"--requests", "-1"},
           {"--rate", "fast"},
           {"--rate", "-1"},
           {"--rate", "1e-300"},
           {"--compute-tokens-per-second", "nan"},
           {"--compute-tokens-per-second", "0.1"},
           {"--router", "127.0.0.1:99999"},
           {"--seed", "x"},
           {"--output", "xml"},
           {"--node", "127.0.0.1:1", "--router", "127.0.0.1:2"}}) {
    const Ran ran = RunReplay(arguments);
    EXPECT_EQ(ran.code, 2) << arguments[0] << " " << arguments[1];
    EXPECT_THAT(ran.err, StartsWith("cairnctl replay: "));
    EXPECT_THAT(ran.err, HasSubstr("usage: cairnctl replay"));
  }
}

}  // namespace
}  // namespace cairn::ctl
