// cairnctl replay-decisions as a person uses it, through the function that main calls: over files
// that the router's recorder wrote, files that are cut, files that are none, and command lines that
// make no sense.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "client/ctl/command.h"
#include "router/decisions/decision_recorder.h"
#include "tests/router/decisions/memory_storage.h"
#include "tests/router/decisions/sample_decisions.h"
#include "tests/testing/fake_clock.h"

namespace cairn::ctl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

constexpr uint32_t kDecisions = 300;

struct Ran {
  int code = 0;
  std::string out;
  std::string err;
};

Ran RunIt(std::vector<std::string> arguments, const std::string& input = "") {
  arguments.insert(arguments.begin(), "replay-decisions");
  std::istringstream in(input);
  std::ostringstream out;
  std::ostringstream err;
  const int code = RunCairnctl(arguments, {&in, &out}, &err);
  return {code, out.str(), err.str()};
}

// As a router with the default policy writes it, a second from one to the next; the first third is
// reported on at the end of all. Oldest file first.
std::vector<std::string> RecordedFiles(uint64_t bytes_max,
                                       const std::shared_ptr<const router::ReplicaNames>& names,
                                       absl::Duration started_after = absl::ZeroDuration()) {
  router::MemoryDisk disk;
  testing::FakeClock clock;
  clock.Advance(started_after);
  router::DecisionRecorderOptions options;
  options.policy = "prefix_cost";
  options.bytes_max = bytes_max;
  router::DecisionRecorder recorder(options, std::make_unique<router::MemoryStorage>(&disk),
                                    &clock);
  EXPECT_TRUE(recorder.Open().ok());
  for (uint32_t number = 0; number < kDecisions; ++number) {
    recorder.OnDecision(router::NumberedDecision(number, names));
    clock.Advance(absl::Seconds(1));
  }
  for (uint32_t number = 0; number < kDecisions / 3; ++number) {
    recorder.OnOutcome({.booking = router::NumberedBooking(number), .cached_tokens = 512});
  }
  recorder.Flush();
  return disk.files;
}

std::string Recorded() {
  return RecordedFiles(uint64_t{256} << 20, router::NumberedNames(4)).front();
}

std::string FileOf(const std::string& content, const std::string& suffix = "") {
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/replay_decisions-",
                   ::testing::UnitTest::GetInstance()->current_test_info()->name(), suffix);
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

TEST(ReplayDecisionsCommandTest, TheRecordedPolicyGivesTheRecordedAnswersBitForBit) {
  const Ran ran = RunIt({"--decisions", FileOf(Recorded())});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, StartsWith("300 decisions of a router with the policy prefix_cost"));
  EXPECT_THAT(ran.out, HasSubstr("300 of 300 answers are the recorded ones, bit for bit"));
  EXPECT_THAT(ran.out, HasSubstr("100 were reported on"));
  EXPECT_THAT(ran.err, IsEmpty());
}

TEST(ReplayDecisionsCommandTest, AllPoliciesAreComparedAndTheSameInEachRun) {
  const std::string path = FileOf(Recorded());
  const Ran ran = RunIt({"--decisions", path, "--policy", "all", "--output", "json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(RunIt({"--decisions", path, "--policy", "all", "--output", "json"}).out, ran.out);
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json["decisions"], kDecisions);
  EXPECT_EQ(json["seconds"], kDecisions - 1);
  EXPECT_EQ(json["damage"], "");
  ASSERT_EQ(json["policies"].size(), router::RoutePolicyNames().size());
  EXPECT_EQ(json["policies"][0]["policy"], "prefix_cost");
  EXPECT_EQ(json["policies"][0]["same_answer"], kDecisions);
  EXPECT_EQ(json["policies"][0]["hit_rate"], json["recorded"]["hit_rate"]);
  for (const Json& policy : json["policies"]) {
    EXPECT_EQ(policy["same_choice"].get<uint32_t>() + policy["other_choice"].get<uint32_t>(),
              kDecisions);
  }
  EXPECT_EQ(json["outcomes"]["measured"], kDecisions / 3);
  EXPECT_EQ(json["outcomes"]["delivered_tokens"], kDecisions / 3 * 512);
}

TEST(ReplayDecisionsCommandTest, DifferencesShowEachCandidate) {
  const std::string path = FileOf(Recorded());
  const Ran ran = RunIt({"--decisions", path, "--policy", "least_loaded", "--differences", "2"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("prefix_cost chose worker-"),
                             HasSubstr("least_loaded chooses worker-")));
  const Json json = Json::parse(RunIt({"--decisions", path, "--policy", "least_loaded",
                                       "--differences", "2", "--output", "json"})
                                    .out);
  ASSERT_EQ(json["differences"].size(), 2u);
  const Json& difference = json["differences"][0];
  EXPECT_EQ(difference["policy"], "least_loaded");
  ASSERT_EQ(difference["candidates"].size(), 4u);
  EXPECT_EQ(difference["candidates"][0]["worker_address"], difference["choice"]);
  for (const Json& candidate : difference["candidates"]) {
    EXPECT_TRUE(candidate["score"].is_number());
    EXPECT_TRUE(candidate["recorded_place"].is_number());
    EXPECT_TRUE(candidate["queued_seconds"].is_number());
  }
}

TEST(ReplayDecisionsCommandTest, OneDecisionIsShownAsEachPolicyMakesItWhetherOrNotItDiffers) {
  const std::string path = FileOf(Recorded());
  const auto shown = [&path](const std::string& decision) {
    return Json::parse(RunIt({"--decisions", path, "--policy", "prefix_cost,least_loaded",
                              "--decision", decision, "--output", "json"})
                           .out)["shown"];
  };
  const Json by_number = shown("5");
  ASSERT_EQ(by_number.size(), 2u);
  EXPECT_EQ(by_number[0]["choice"], by_number[0]["recorded_choice"]);
  EXPECT_EQ(by_number[1]["policy"], "least_loaded");
  EXPECT_EQ(by_number[1]["sequence"], 5);
  EXPECT_EQ(shown(by_number[0]["booking_hex"].get<std::string>()), by_number);

  const Ran ran = RunIt({"--decisions", path, "--decision", "5"});
  EXPECT_THAT(ran.out, HasSubstr("\ndecision 5, 6656 tokens: prefix_cost chose worker-"));
  const Ran none = RunIt({"--decisions", path, "--decision", "5000"});
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.err, HasSubstr("no decision of the 300 that were read is 5000"));
}

TEST(ReplayDecisionsCommandTest, NamesInAFileDoNotCommandATerminal) {
  router::ReplicaNames names = *router::NumberedNames(4);
  for (router::ReplicaName& name : names) name.worker_address = "\x1b[31mworker";
  const std::string file =
      RecordedFiles(uint64_t{256} << 20, std::make_shared<const router::ReplicaNames>(names))
          .front();
  const Ran ran = RunIt({"--decisions", FileOf(file), "--policy", "random", "--differences", "1"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("\\033[31mworker"), Not(HasSubstr("\x1b"))));
}

TEST(ReplayDecisionsCommandTest, AnotherWeightIsAskedWithoutAnotherRouter) {
  const std::string path = FileOf(Recorded());
  const Json json =
      Json::parse(RunIt({"--decisions", path, "--miss-weight", "1", "--output", "json"}).out);
  EXPECT_LT(json["policies"][0]["same_choice"], kDecisions);
  EXPECT_LT(json["policies"][0]["mean_queued_seconds"], json["recorded"]["mean_queued_seconds"]);
}

TEST(ReplayDecisionsCommandTest, ALimitEndsItAndStandardInputIsRead) {
  const Json json =
      Json::parse(RunIt({"--decisions", "-", "--limit", "7", "--output", "json"}, Recorded()).out);
  EXPECT_EQ(json["decisions"], 7);
}

TEST(ReplayDecisionsCommandTest, TheFilesOfOneRunAreReplayedAsOneAndOthersAreNotMixedIn) {
  const auto names = router::NumberedNames(4);
  const std::vector<std::string> files = RecordedFiles(250 << 10, names);
  ASSERT_EQ(files.size(), 2u);
  const std::string before = FileOf(files[0], ".1");
  const std::string last = FileOf(files[1]);
  const Json both =
      Json::parse(RunIt({"--decisions", before + "," + last, "--output", "json"}).out);
  EXPECT_EQ(both["decisions"], kDecisions);
  EXPECT_EQ(both["policies"][0]["same_answer"], kDecisions);
  EXPECT_EQ(both["bytes_used"], files[0].size() + files[1].size());
  // What was decided in the one is reported on in the other.
  EXPECT_EQ(both["outcomes"]["measured"], kDecisions / 3);
  EXPECT_EQ(both["outcomes"]["unmatched"], 0);
  const Json alone = Json::parse(RunIt({"--decisions", last, "--output", "json"}).out);
  EXPECT_GT(alone["outcomes"]["unmatched"], 0);
  const std::string other =
      FileOf(RecordedFiles(250 << 10, names, absl::Hours(1)).front(), ".other");
  const Ran mixed = RunIt({"--decisions", other + "," + last});
  EXPECT_EQ(mixed.code, 1);
  EXPECT_THAT(mixed.err, HasSubstr(last + ": is of another run"));
}

TEST(ReplayDecisionsCommandTest, WhatStandsBeforeADamageIsUsedAndTheDamageSaid) {
  const std::string whole = Recorded();
  const Ran cut = RunIt({"--decisions", FileOf(whole.substr(0, whole.size() / 2))});
  EXPECT_EQ(cut.code, 0);
  EXPECT_THAT(cut.out, Not(StartsWith("300 ")));
  EXPECT_THAT(cut.out, HasSubstr(" answers are the recorded ones, bit for bit"));
  EXPECT_THAT(cut.err, AllOf(HasSubstr("what follows byte "), HasSubstr("ends within a frame")));
  std::string changed = whole;
  changed[changed.size() / 2] ^= 4;
  EXPECT_THAT(RunIt({"--decisions", FileOf(changed)}).err, HasSubstr("checksum"));
}

TEST(ReplayDecisionsCommandTest, FilesThatAreNoneEndWith1) {
  const std::string foreign = FileOf("{\"trace\": 1}\n");
  const Ran ran = RunIt({"--decisions", foreign});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr(foreign + ": is no file of decisions"));
  std::string later = Recorded();
  later[8] = 9;
  EXPECT_THAT(RunIt({"--decisions", FileOf(later)}).err, HasSubstr("version 9"));
  const Ran missing = RunIt({"--decisions", "/nonexistent"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, HasSubstr("/nonexistent: cannot be opened"));
}

TEST(ReplayDecisionsCommandTest, CommandLinesThatMakeNoSenseEndWith2AndUsage) {
  const std::string path = FileOf(Recorded());
  EXPECT_EQ(RunIt({}).code, 2);
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{"--policy", "best"},
                                             {"--policy", ""},
                                             {"--policy", "random,"},
                                             {"--miss-weight", "0.5"},
                                             {"--miss-weight", "much"},
                                             {"--limit", "-1"},
                                             {"--differences", "99999"},
                                             {"--decision", "that one"},
                                             {"--output", "xml"}}) {
    std::vector<std::string> arguments = {"--decisions", path};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Ran ran = RunIt(arguments);
    EXPECT_EQ(ran.code, 2) << flags[0] << " " << flags[1];
    EXPECT_THAT(ran.err, AllOf(StartsWith("cairnctl replay-decisions: "), HasSubstr(flags[0]),
                               HasSubstr("usage: cairnctl replay-decisions")));
  }
}

}  // namespace
}  // namespace cairn::ctl
