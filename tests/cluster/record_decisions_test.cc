// A whole fleet whose router records what it decides: a replay runs through it, the router is ended
// or killed, and cairnctl, as a program of its own, makes every decision again from the file.
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/cluster/cluster_fixture.h"
#include "tests/cluster/staged_replay.h"

namespace cairn::testing {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr size_t kRequests = 150;

class RecordDecisionsTest : public ClusterTest {
 protected:
  void TearDown() override {
    ClusterTest::TearDown();
    std::filesystem::remove_all(folder_);
  }

  std::vector<std::string> Flags() const {
    return {absl::StrCat("--record-decisions=", path_), "--record-decisions-bytes=8MiB"};
  }
  // Through the router that runs; hit tokens of all requests.
  uint64_t Replay(uint64_t seed) {
    StagedReplay replay(SmallBlocks(), Target(), Generate(seed, kRequests));
    const absl::StatusOr<replay::ReplayReport> report = replay.Finish();
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? report->hit_tokens : 0;
  }
  static ProgramRun Cairnctl(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "replay-decisions");
    return RunToEnd(absl::StrCat(CAIRN_BIN_DIR, "/cairnctl"), arguments, kSoon);
  }
  static Json ReportOf(const std::string& path, const std::string& policy = "") {
    std::vector<std::string> arguments = {"--decisions", path, "--output", "json"};
    if (!policy.empty()) arguments.insert(arguments.end(), {"--policy", policy});
    const ProgramRun run = Cairnctl(arguments);
    EXPECT_EQ(run.exit_status, 0) << run.output;
    // What is said of a damage stands on a line of its own.
    const std::vector<std::string> lines = absl::StrSplit(run.output, '\n', absl::SkipEmpty());
    for (const std::string& line : lines) {
      if (line[0] == '{') return Json::parse(line);
    }
    ADD_FAILURE() << run.output;
    return {};
  }
  static ProgramRun Router(std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--insecure", "--listen=127.0.0.1:0",
                               "--metrics-listen=", "--nodes=127.0.0.1:1"});
    return RunToEnd(absl::StrCat(CAIRN_BIN_DIR, "/cairn-router"), flags, kSoon);
  }

  const std::string folder_ = MakeTempFolder();
  const std::string path_ = folder_ + "/decisions";
};

TEST_F(RecordDecisionsTest, WhatARouterDecidedIsDecidedAgain) {
  ASSERT_NO_FATAL_FAILURE(AddNodes(3));
  ASSERT_NO_FATAL_FAILURE(StartRouter(NodeAddresses(), Flags()));
  const uint64_t hit_tokens = Replay(1);
  EXPECT_GT(hit_tokens, 0u);
  EXPECT_EQ(router().Terminate(kSoon), 0);

  struct stat status {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  const Json report = ReportOf(path_);
  EXPECT_EQ(report["decisions"], kRequests);
  EXPECT_EQ(report["policies"][0]["same_answer"], kRequests);
  EXPECT_EQ(report["outcomes"]["ended"], kRequests);
  EXPECT_EQ(report["outcomes"]["measured"], kRequests);
  EXPECT_EQ(report["outcomes"]["delivered_tokens"], hit_tokens);
  EXPECT_EQ(report["damage"], "");
  EXPECT_EQ(report["lost_records"], 0);
  const Json other = ReportOf(path_, "round_robin");
  EXPECT_LT(other["policies"][0]["same_choice"], kRequests);
  EXPECT_EQ(other["recorded"], report["recorded"]);
  EXPECT_EQ(other, ReportOf(path_, "round_robin"));
}

TEST_F(RecordDecisionsTest, AKilledRouterLeavesWhatItWroteAndTheNextOneKeepsIt) {
  ASSERT_NO_FATAL_FAILURE(AddNodes(2));
  ASSERT_NO_FATAL_FAILURE(StartRouter(NodeAddresses(), Flags()));
  Replay(1);
  // What is decided is written within a moment.
  const absl::Time deadline = absl::Now() + kSoon;
  while (ReportOf(path_)["outcomes"]["ended"] < kRequests && absl::Now() < deadline) continue;
  router().Kill9();
  const Json killed = ReportOf(path_);
  EXPECT_EQ(killed["decisions"], kRequests);
  EXPECT_EQ(killed["policies"][0]["same_answer"], kRequests);

  ASSERT_NO_FATAL_FAILURE(RestartRouter());
  ASSERT_TRUE(AwaitExact());
  EXPECT_EQ(ReportOf(path_)["decisions"], 0);
  EXPECT_EQ(ReportOf(path_ + ".1"), killed);
  Replay(2);
  EXPECT_EQ(router().Terminate(kSoon), 0);
  EXPECT_EQ(ReportOf(path_)["policies"][0]["same_answer"], kRequests);
}

TEST_F(RecordDecisionsTest, AFileAtTheLimitOfItsProcessEndsTheRecordingAndNotTheRouter) {
  ASSERT_NO_FATAL_FAILURE(AddNodes(2));
  ASSERT_NO_FATAL_FAILURE(StartRouter(NodeAddresses(), Flags()));
  Replay(1);
  const absl::Time deadline = absl::Now() + kSoon;
  while (ReportOf(path_)["outcomes"]["ended"] < kRequests && absl::Now() < deadline) continue;
  const rlimit small{.rlim_cur = std::filesystem::file_size(path_) + 700,
                     .rlim_max = RLIM_INFINITY};
  ASSERT_EQ(prlimit(router().process().pid(), RLIMIT_FSIZE, &small, nullptr), 0);
  EXPECT_GT(Replay(2), 0u);
  EXPECT_THAT(router().Log(), HasSubstr("decisions are not recorded any more"));
  EXPECT_EQ(router().Terminate(kSoon), 0);
  EXPECT_GE(ReportOf(path_)["decisions"], kRequests);
}

TEST_F(RecordDecisionsTest, FlagsThatMakeNoSenseAreNamedAndForeignFilesLeftAlone) {
  for (const char* flag : {"--record-decisions-share=0", "--record-decisions-share=1.5",
                           "--record-decisions-bytes=1KiB"}) {
    const ProgramRun run = Router({flag});
    EXPECT_NE(run.exit_status, 0) << flag;
    EXPECT_THAT(run.output, HasSubstr(flag));
  }
  const ProgramRun no_folder = Router({"--record-decisions=" + folder_ + "/missing/decisions"});
  EXPECT_EQ(no_folder.exit_status, 1);
  EXPECT_THAT(no_folder.output, HasSubstr("--record-decisions: " + folder_ + "/missing"));
  std::ofstream(path_) << "notes";
  const ProgramRun foreign = Router({"--record-decisions=" + path_});
  EXPECT_EQ(foreign.exit_status, 1);
  EXPECT_THAT(foreign.output, HasSubstr("is no file of decisions; name another file"));
  std::ifstream file(path_);
  std::string content;
  file >> content;
  EXPECT_EQ(content, "notes");
}

}  // namespace
}  // namespace cairn::testing
