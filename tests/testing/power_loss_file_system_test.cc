// A loss of power against real files in a folder: what was synced stays, what was not may go, and
// names go with their folder's sync.
#include "tests/testing/power_loss_file_system.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "rocksdb/env.h"
#include "tests/testing/child_process.h"

namespace cairn::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The worst: nothing stays that need not.
uint64_t Nothing(uint64_t bound) { return bound == 3 ? 1 : 0; }
// The best: all stays. (Of three ways for what was not synced, not the zeros.)
uint64_t Everything(uint64_t bound) { return bound - 1; }

class PowerLossFileSystemTest : public ::testing::Test {
 protected:
  PowerLossFileSystemTest()
      : system_(std::make_shared<PowerLossFileSystem>(rocksdb::FileSystem::Default(),
                                                      folder_ + ".attic")),
        env_(rocksdb::NewCompositeEnv(system_)) {}
  ~PowerLossFileSystemTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  rocksdb::Status Write(const std::string& name, const std::string& text, bool sync) {
    return rocksdb::WriteStringToFile(env_.get(), text, Path(name), sync);
  }
  std::string Read(const std::string& name) {
    std::string text;
    const rocksdb::Status status = rocksdb::ReadFileToString(env_.get(), Path(name), &text);
    return status.ok() ? text : "none";
  }
  void SyncFolder() {
    std::unique_ptr<rocksdb::Directory> directory;
    ASSERT_TRUE(env_->NewDirectory(folder_, &directory).ok());
    ASSERT_TRUE(directory->Fsync().ok());
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  const std::string folder_ = MakeTempFolder();
  std::shared_ptr<PowerLossFileSystem> system_;
  std::unique_ptr<rocksdb::Env> env_;
};

TEST_F(PowerLossFileSystemTest, SyncedBytesUnderASyncedNameStay) {
  ASSERT_TRUE(Write("a", "hello", /*sync=*/true).ok());
  SyncFolder();
  EXPECT_EQ(system_->Lose(Nothing), 0u);
  EXPECT_EQ(Read("a"), "hello");
}

TEST_F(PowerLossFileSystemTest, ANameGoesWhoseFolderWasNotSynced) {
  ASSERT_TRUE(Write("a", "hello", /*sync=*/true).ok());
  EXPECT_EQ(system_->Lose(Nothing), 1u);
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(PowerLossFileSystemTest, BytesAfterTheLastSyncGoOrAreZeros) {
  std::unique_ptr<rocksdb::WritableFile> file;
  ASSERT_TRUE(env_->NewWritableFile(Path("a"), &file, {}).ok());
  ASSERT_TRUE(file->Append("hello").ok() && file->Sync().ok() && file->Append(" all").ok());
  SyncFolder();
  EXPECT_EQ(system_->Lose([](uint64_t bound) { return bound == 3 ? 0 : bound - 1; }), 1u);
  EXPECT_EQ(Read("a"), std::string("hello\0\0\0\0", 9));
  ASSERT_TRUE(env_->ReopenWritableFile(Path("a"), &file, {}).ok());
  ASSERT_TRUE(file->Append("!").ok() && file->Sync().ok() && file->Append("more").ok());
  EXPECT_EQ(system_->Lose(Nothing), 1u);
  EXPECT_EQ(Read("a"), std::string("hello\0\0\0\0!", 10));
}

TEST_F(PowerLossFileSystemTest, RenamedLinkedAndDeletedNamesComeBack) {
  ASSERT_TRUE(Write("a", "first", true).ok() && Write("b", "second", true).ok());
  ASSERT_TRUE(Write("c", "third", true).ok());
  SyncFolder();
  ASSERT_TRUE(env_->RenameFile(Path("a"), Path("b")).ok());
  ASSERT_TRUE(env_->LinkFile(Path("b"), Path("d")).ok());
  ASSERT_TRUE(env_->DeleteFile(Path("c")).ok());
  EXPECT_THAT(Names(), ElementsAre("b", "d"));
  EXPECT_EQ(system_->Lose(Nothing), 3u);
  EXPECT_THAT(Names(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(Read("a") + Read("b") + Read("c"), "firstsecondthird");
}

TEST_F(PowerLossFileSystemTest, ASyncOfTheFolderMakesThemStay) {
  ASSERT_TRUE(Write("a", "first", true).ok() && Write("b", "second", true).ok());
  ASSERT_TRUE(env_->RenameFile(Path("a"), Path("b")).ok());
  SyncFolder();
  EXPECT_EQ(system_->Lose(Nothing), 0u);
  EXPECT_THAT(Names(), ElementsAre("b"));
  EXPECT_EQ(Read("b"), "first");
}

TEST_F(PowerLossFileSystemTest, WhatWasReplacedAndNeverSyncedIsNotMadeUp) {
  ASSERT_TRUE(Write("a", "first", true).ok());
  SyncFolder();
  ASSERT_TRUE(Write("a", "second", /*sync=*/false).ok());
  EXPECT_EQ(system_->Lose(Nothing), 1u);
  EXPECT_EQ(Read("a"), "first");
}

TEST_F(PowerLossFileSystemTest, AfterTheCutNothingChangesUntilThePowerIsBack) {
  system_->CutAfter(3);
  ASSERT_TRUE(Write("a", "hello", /*sync=*/false).ok());  // Made and written.
  EXPECT_FALSE(system_->is_off());
  EXPECT_TRUE(env_->RenameFile(Path("a"), Path("b")).IsIOError());
  EXPECT_TRUE(system_->is_off());
  EXPECT_TRUE(Write("c", "hello", false).IsIOError());
  EXPECT_THAT(Names(), ElementsAre("a"));
  EXPECT_EQ(system_->Lose(Everything), 0u);
  EXPECT_EQ(Read("a"), "hello");
  EXPECT_TRUE(Write("c", "hello", false).ok());
}

}  // namespace
}  // namespace cairn::testing
