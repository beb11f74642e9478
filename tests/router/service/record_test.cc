// A router in this process that records what it decides: its figures, and a disk that refuses more
// (by a limit on file sizes) while it routes.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "tests/router/service/router_fixture.h"

namespace cairn::router {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class RecordTest : public RouterTest {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    router_ = nullptr;
    std::filesystem::remove_all(folder_);
  }

  RouterConfig Recording() const {
    RouterConfig config = SmallConfig({node_.target()});
    config.record_decisions = folder_ + "/decisions";
    return config;
  }
  void Start() {
    StartRouter(Recording(), [this](absl::string_view line) {
      absl::MutexLock lock(&mutex_);
      lines_.emplace_back(line);
    });
    ASSERT_TRUE(AwaitState(0, HolderState::kExact));
  }
  // Books, and ends that.
  void RouteOnce() {
    const std::vector<BlockKey> keys = NumberedKeys(1, 10);
    const auto answer = router_->core().Route({.caller = "caller",
                                               .tenant = "public",
                                               .fingerprint = ScriptedFingerprint(),
                                               .keys = keys,
                                               .request_id = ""});
    ASSERT_TRUE(answer.ok()) << answer.status();
    const auto known =
        router_->core().ReportOutcome({.booking = answer->booking,
                                       .router_incarnation = router_->core().incarnation(),
                                       .worker_address = "",
                                       .computed_tokens = 5});
    ASSERT_TRUE(known.ok() && *known);
  }
  bool AwaitMetric(const std::string& line) {
    return Await([&] { return router_->metrics().Text().find(line + "\n") != std::string::npos; });
  }

  const std::string folder_ =
      absl::StrCat(::testing::TempDir(), "/record_test-",
                   ::testing::UnitTest::GetInstance()->current_test_info()->name());
  ScriptedNode node_{{.node_id = "node-a", .worker_address = "worker:a"}};
  absl::Mutex mutex_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(RecordTest, WhatIsRecordedIsCounted) {
  ASSERT_NO_FATAL_FAILURE(Start());
  EXPECT_TRUE(AwaitMetric("cairn_router_decisions_recording 1"));
  RouteOnce();
  RouteOnce();
  EXPECT_TRUE(AwaitMetric("cairn_router_decisions_recorded_total 2"));
  EXPECT_TRUE(AwaitMetric("cairn_router_outcomes_recorded_total 2"));
  EXPECT_TRUE(AwaitMetric("cairn_router_decisions_dropped_total 0"));
}

TEST_F(RecordTest, WithoutTheFlagThereIsNoFileAndNoFigure) {
  RouterConfig config = Recording();
  config.record_decisions.clear();
  StartRouter(config);
  EXPECT_THAT(router_->metrics().Text(), Not(HasSubstr("decisions_recorded")));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  EXPECT_THAT(config.Memory().Table(), Not(HasSubstr("decisions")));
  EXPECT_THAT(Recording().Memory().Table(), HasSubstr("decisions to record"));
}

TEST_F(RecordTest, ADiskThatRefusesEndsTheRecordingAndNotTheRouting) {
  ASSERT_NO_FATAL_FAILURE(Start());
  RouteOnce();
  ASSERT_TRUE(AwaitMetric("cairn_router_decisions_recorded_total 1"));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler_before = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = std::filesystem::file_size(folder_ + "/decisions") + 700,
                     .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  for (int i = 0; i < 20; ++i) RouteOnce();
  const bool ended = AwaitMetric("cairn_router_decisions_recording 0");
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler_before);
  EXPECT_TRUE(ended);
  RouteOnce();
  absl::MutexLock lock(&mutex_);
  const auto said = std::count_if(lines_.begin(), lines_.end(), [](const std::string& line) {
    return line.find("decisions are not recorded any more") != std::string::npos;
  });
  EXPECT_EQ(said, 1);
}

TEST_F(RecordTest, AFileThatCannotBeMadeKeepsTheRouterFromStarting) {
  RouterConfig config = Recording();
  config.record_decisions = folder_ + "/missing/decisions";
  const absl::Status status = Router::Start(config).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), AllOf(HasSubstr("--record-decisions: "), HasSubstr("missing")));
}

}  // namespace
}  // namespace cairn::router
