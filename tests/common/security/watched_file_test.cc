// A reader that the test feeds stands for the file system, and the test is the thread that polls:
// nothing waits for time.
#include "common/security/watched_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include "common/security/file_watch.h"
#include "common/security/file_watch_metrics.h"

namespace cairn::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WatchedFileTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<WatchedFile<std::string>>> Open() {
    return WatchedFile<std::string>::Open(
        "words",
        [this](absl::string_view text, absl::string_view file) -> absl::StatusOr<std::string> {
          ++parsed_;
          if (text == "bad") return absl::InvalidArgumentError(absl::StrCat(file, ":1: bad"));
          return absl::StrCat("<", text, ">");
        },
        [this](const std::string&) { return content_; });
  }

  absl::StatusOr<std::string> content_ = std::string("one");
  int parsed_ = 0;
};

TEST_F(WatchedFileTest, TakesOverWhatChanged) {
  const auto file = Open();
  ASSERT_TRUE(file.ok()) << file.status();
  const std::shared_ptr<const std::string> kept = (*file)->Get();
  EXPECT_EQ(*kept, "<one>");
  EXPECT_TRUE((*file)->Poll().ok());
  EXPECT_EQ(parsed_, 1) << "nothing changed";
  content_ = "two";
  EXPECT_EQ(*(*file)->Get(), "<one>") << "only a poll reads";
  EXPECT_TRUE((*file)->Poll().ok());
  EXPECT_EQ(*(*file)->Get(), "<two>");
  EXPECT_EQ(*kept, "<one>") << "who has the old value keeps it";
}

TEST_F(WatchedFileTest, KeepsTheOldValueWhenTheNewOneIsBad) {
  const auto file = Open();
  content_ = "bad";
  EXPECT_THAT(std::string((*file)->Poll().message()), HasSubstr("words:1: bad"));
  EXPECT_FALSE((*file)->Poll().ok()) << "it stays bad until it changes";
  EXPECT_EQ(*(*file)->Get(), "<one>");
  content_ = absl::FailedPreconditionError("words: gone");
  EXPECT_FALSE((*file)->Poll().ok());
  EXPECT_EQ(*(*file)->Get(), "<one>");
  content_ = "three";
  EXPECT_TRUE((*file)->Poll().ok());
  EXPECT_EQ(*(*file)->Get(), "<three>");
}

TEST_F(WatchedFileTest, DoesNotOpenWithoutAGoodFile) {
  content_ = "bad";
  EXPECT_FALSE(Open().ok());
  content_ = absl::FailedPreconditionError("words: gone");
  EXPECT_FALSE(Open().ok());
}

TEST_F(WatchedFileTest, TheWatchCountsEachFailedPollAndLogsEachReasonOnce) {
  const auto file = Open();
  std::vector<std::string> log;
  FileWatch watch({[&file] { return (*file)->Poll(); }},
                  [&log](absl::string_view line) { log.emplace_back(line); });
  watch.PollAll();
  EXPECT_TRUE(log.empty());
  content_ = "bad";
  watch.PollAll();
  watch.PollAll();
  EXPECT_EQ(watch.errors(), 2u);
  EXPECT_THAT(log, ElementsAre(HasSubstr("words:1: bad")));
  content_ = "good";
  watch.PollAll();
  EXPECT_THAT(log, ElementsAre(HasSubstr("words:1: bad"), HasSubstr("good again")));
}

TEST_F(WatchedFileTest, TheFileThatIsGoodAgainIsNamed) {
  const auto file = Open();
  std::vector<std::string> log;
  FileWatch watch(std::vector<FileWatch::File>{{"quota", [&file] { return (*file)->Poll(); }}},
                  [&log](absl::string_view line) { log.emplace_back(line); });
  content_ = "bad";
  watch.PollAll();
  content_ = "good";
  watch.PollAll();
  EXPECT_THAT(log, ElementsAre(HasSubstr("words:1: bad"), HasSubstr("the quota file")));
}

TEST_F(WatchedFileTest, EachNewValueHasANewGenerationAndABadOneHasNone) {
  const auto file = Open();
  const uint64_t first = (*file)->generation();
  EXPECT_TRUE((*file)->Poll().ok());
  content_ = "bad";
  EXPECT_FALSE((*file)->Poll().ok());
  EXPECT_EQ((*file)->generation(), first);
  content_ = "two";
  EXPECT_TRUE((*file)->Poll().ok());
  EXPECT_EQ((*file)->generation(), first + 1);
}

TEST_F(WatchedFileTest, MetricsSayWhichFileFailsAndWhenItWasGood) {
  const auto file = Open();
  FileWatch watch(std::vector<FileWatch::File>{{"words", [&file] { return (*file)->Poll(); }},
                                               {"fine", [] { return absl::OkStatus(); }}},
                  nullptr);
  Metrics metrics;
  const FileWatchMetrics served(&metrics, "cairn_test", {&watch, nullptr});
  const absl::Time made = watch.counts()[0].good;
  content_ = "bad";
  watch.PollAll();
  EXPECT_EQ(watch.counts()[0].good, made);
  EXPECT_GE(watch.counts()[1].good, made);
  EXPECT_THAT(metrics.Text(), HasSubstr("cairn_test_file_read_errors_total{file=\"words\"} 1\n"));
  EXPECT_THAT(metrics.Text(), HasSubstr("cairn_test_file_read_errors_total{file=\"fine\"} 0\n"));
  EXPECT_THAT(metrics.Text(), HasSubstr("cairn_test_file_good_seconds{file=\"words\"}"));
}

TEST(ReadSecurityFile, WaitsForNobody) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/cairn_pipe_nobody_writes");
  unlink(path.c_str());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(std::string(ReadSecurityFile(path).status().message()),
              HasSubstr("is no regular file"));
  EXPECT_THAT(std::string(ReadSecurityFile(::testing::TempDir()).status().message()),
              HasSubstr("is no regular file"));
  unlink(path.c_str());
}

}  // namespace
}  // namespace cairn::testing
