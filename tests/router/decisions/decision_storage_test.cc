// Files on the machine's own disk: who may read them, what is not touched, and a write that the
// system refuses half-way (by a limit on file sizes).
#include "router/decisions/decision_storage.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <barrier>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "router/decisions/decision_frames.h"

namespace cairn::router {
namespace {

using ::testing::HasSubstr;

class DecisionStorageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Content(const std::string& path) const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void Put(const std::string& path, const std::string& content) const {
    std::ofstream(path, std::ios::binary) << content;
  }

  const std::string folder_ =
      absl::StrCat(::testing::TempDir(), "/decision_storage_test-",
                   ::testing::UnitTest::GetInstance()->current_test_info()->name());
  const std::string path_ = folder_ + "/decisions";
  const std::string before_ = path_ + ".1";
};

TEST_F(DecisionStorageTest, TheOneBeforeStaysAndTheOneBeforeThatGoes) {
  DecisionFiles files(path_);
  for (const char* letter : {"a", "b", "c"}) {
    ASSERT_TRUE(files.Begin().ok());
    ASSERT_TRUE(files.Append(DecisionHead()).ok());
    ASSERT_TRUE(files.Append(std::string(5000, *letter)).ok());
  }
  EXPECT_EQ(Content(path_), DecisionHead() + std::string(5000, 'c'));
  EXPECT_EQ(Content(before_), DecisionHead() + std::string(5000, 'b'));
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    EXPECT_FALSE(entry.path().empty());
    ++count;
  }
  EXPECT_EQ(count, 2u);
}

TEST_F(DecisionStorageTest, FilesAreTheOwnersAlone) {
  const mode_t umask_before = umask(0);
  DecisionFiles files(path_);
  EXPECT_TRUE(files.Begin().ok());
  umask(umask_before);
  struct stat status {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
}

TEST_F(DecisionStorageTest, RunsThatDecideNothingLeaveTheFileOfTheOneBefore) {
  const std::string decided = DecisionHead() + std::string(5000, 'd');
  for (const std::string& content : {decided, DecisionHead(), std::string(), DecisionHead()}) {
    DecisionFiles files(path_);
    const absl::Status status = files.Begin();
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(files.Append(content).ok());
  }
  DecisionFiles files(path_);
  ASSERT_TRUE(files.Begin().ok());
  EXPECT_EQ(Content(before_), decided);
  EXPECT_EQ(Content(path_), "");
}

TEST_F(DecisionStorageTest, WhatIsNoFileOfDecisionsIsNotTouched) {
  for (const std::string& path : {path_, before_}) {
    for (const std::string content : {"root:x:0:0:", "cairnde", "x"}) {
      SetUp();
      Put(path, content);
      DecisionFiles files(path_);
      const absl::Status status = files.Begin();
      EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
      EXPECT_THAT(status.message(), HasSubstr(path + ": is there and is no file of decisions"));
      EXPECT_EQ(Content(path), content);
    }
  }
  SetUp();
  std::filesystem::create_directories(path_);
  DecisionFiles files(path_);
  EXPECT_FALSE(files.Begin().ok());
}

TEST_F(DecisionStorageTest, ALinkIsNotFollowed) {
  Put(folder_ + "/target", DecisionHead());
  ASSERT_EQ(symlink((folder_ + "/target").c_str(), path_.c_str()), 0);
  DecisionFiles files(path_);
  EXPECT_FALSE(files.Begin().ok());
  EXPECT_EQ(Content(folder_ + "/target"), DecisionHead());
}

TEST_F(DecisionStorageTest, TwoWritersOfOneFileAreOneTooMany) {
  DecisionFiles first(path_);
  ASSERT_TRUE(first.Begin().ok());
  ASSERT_TRUE(first.Append(DecisionHead()).ok());
  DecisionFiles second(path_);
  const absl::Status status = second.Begin();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("another process writes it"));
  EXPECT_TRUE(first.Append("more").ok());
  EXPECT_EQ(Content(path_), DecisionHead() + "more");
}

// Several routers that are started at once with one file, again and again.
TEST_F(DecisionStorageTest, OfThoseThatBeginAtOnceOneWritesAndNothingIsLost) {
  constexpr int kRounds = 300;
  constexpr size_t kWriters = 4;
  std::string before;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::unique_ptr<DecisionFiles>> writers;
    std::vector<absl::Status> began(kWriters);
    std::vector<std::thread> threads;
    std::barrier together(kWriters);
    for (size_t i = 0; i < kWriters; ++i) {
      writers.push_back(std::make_unique<DecisionFiles>(path_));
      threads.emplace_back([&, i] {
        together.arrive_and_wait();
        began[i] = writers[i]->Begin();
      });
    }
    for (std::thread& thread : threads) thread.join();
    // Every other round leaves next to nothing, which the next one replaces.
    const std::string content = DecisionHead() + std::string(round % 2 == 0 ? 5000 : 10,
                                                             static_cast<char>('a' + round % 7));
    int writing = 0;
    for (size_t i = 0; i < kWriters; ++i) {
      if (!began[i].ok()) {
        EXPECT_THAT(began[i].message(), HasSubstr("another process writes it"));
        continue;
      }
      ++writing;
      ASSERT_TRUE(writers[i]->Append(content).ok());
    }
    ASSERT_EQ(writing, 1) << "round " << round;
    ASSERT_EQ(Content(path_), content) << "round " << round;
    ASSERT_EQ(Content(before_), before) << "round " << round;
    if (round % 2 == 0) before = content;
  }
}

TEST_F(DecisionStorageTest, AFileThatWasMovedWhileItWasWrittenIsLeftWhereItIs) {
  DecisionFiles files(path_);
  ASSERT_TRUE(files.Begin().ok());
  ASSERT_TRUE(files.Append(DecisionHead() + std::string(5000, 'a')).ok());
  std::filesystem::rename(path_, folder_ + "/moved");
  ASSERT_TRUE(files.Begin().ok());
  ASSERT_TRUE(files.Append("b").ok());
  EXPECT_EQ(Content(path_), "b");
  EXPECT_EQ(Content(folder_ + "/moved"), DecisionHead() + std::string(5000, 'a'));
}

TEST_F(DecisionStorageTest, AFolderThatIsNotThereIsNamed) {
  DecisionFiles files(folder_ + "/missing/decisions");
  EXPECT_THAT(files.Begin().message(), HasSubstr("missing/decisions: cannot be made"));
}

TEST_F(DecisionStorageTest, AWriteThatTheSystemRefusesIsAnError) {
  DecisionFiles files(path_);
  ASSERT_TRUE(files.Begin().ok());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler_before = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 1000, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = files.Append(std::string(5000, 'x'));
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler_before);
  EXPECT_THAT(status.message(), HasSubstr("decisions: cannot be written: File too large"));
  EXPECT_EQ(Content(path_).size(), 1000u);
}

}  // namespace
}  // namespace cairn::router
