// The faulty file system against real files in a folder: what it passes on, what it breaks, and
// what it counts.
#include "tests/testing/fault_file_system.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "rocksdb/env.h"
#include "tests/testing/child_process.h"

namespace cairn::testing {
namespace {

using rocksdb::IOStatus;

class FaultFileSystemTest : public ::testing::Test {
 protected:
  FaultFileSystemTest()
      : system_(std::make_shared<FaultFileSystem>(rocksdb::FileSystem::Default())),
        env_(rocksdb::NewCompositeEnv(system_)) {}
  ~FaultFileSystemTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  rocksdb::Status Write(const std::string& name, const std::string& text, bool sync = false) {
    return rocksdb::WriteStringToFile(env_.get(), text, Path(name), sync);
  }
  std::string Read(const std::string& name) {
    std::string text;
    const rocksdb::Status status = rocksdb::ReadFileToString(env_.get(), Path(name), &text);
    return status.ok() ? text : status.ToString();
  }
  // By place, as records are read.
  std::string ReadAt(const std::string& name, uint64_t offset, size_t size) {
    std::unique_ptr<rocksdb::RandomAccessFile> file;
    EXPECT_TRUE(env_->NewRandomAccessFile(Path(name), &file, {}).ok());
    std::string scratch(size, '\0');
    rocksdb::Slice result;
    const rocksdb::Status status = file->Read(offset, size, &result, scratch.data());
    return status.ok() ? result.ToString() : status.ToString();
  }

  const std::string folder_ = MakeTempFolder();
  std::shared_ptr<FaultFileSystem> system_;
  std::unique_ptr<rocksdb::Env> env_;
};

TEST_F(FaultFileSystemTest, PassesOnAndCounts) {
  ASSERT_TRUE(Write("a", "hello").ok());
  EXPECT_EQ(Read("a"), "hello");
  EXPECT_EQ(ReadAt("a", 1, 3), "ell");
  EXPECT_EQ(system_->bytes_written(), 5u);
  EXPECT_GE(system_->bytes_read(), 8u);
}

TEST_F(FaultFileSystemTest, FailsTheCallsOfARuleAsOftenAsItSays) {
  ASSERT_TRUE(Write("a", "hello").ok());
  system_->Fail(DiskIo::kRead, "/a", IOStatus::IOError("broken"), 2);
  ASSERT_TRUE(Write("b", "other").ok());
  EXPECT_EQ(Read("b"), "other");
  EXPECT_EQ(Read("a"), "IO error: broken");
  EXPECT_EQ(Read("a"), "IO error: broken");
  EXPECT_EQ(Read("a"), "hello");
}

TEST_F(FaultFileSystemTest, FullDiskTakesNoBytesUntilHealed) {
  system_->Fail(DiskIo::kWrite, "", IOStatus::NoSpace("full"));
  EXPECT_TRUE(Write("a", "hello").IsNoSpace());
  system_->Heal();
  EXPECT_TRUE(Write("a", "hello").ok());
}

TEST_F(FaultFileSystemTest, SyncsAndNamesFailToo) {
  system_->Fail(DiskIo::kSync, "", IOStatus::IOError("broken"));
  EXPECT_TRUE(Write("a", "hello").ok());
  EXPECT_TRUE(Write("b", "hello", /*sync=*/true).IsIOError());
  system_->FailAll("", IOStatus::IOError("broken"));
  EXPECT_TRUE(env_->DeleteFile(Path("a")).IsIOError());
  EXPECT_TRUE(env_->RenameFile(Path("a"), Path("b")).IsIOError());
  EXPECT_TRUE(env_->LinkFile(Path("a"), Path("b")).IsIOError());
  system_->Heal();
  EXPECT_TRUE(env_->RenameFile(Path("a"), Path("b")).ok());
}

TEST_F(FaultFileSystemTest, FlippedBitShowsInReadsOfItsPlaceOnly) {
  ASSERT_TRUE(Write("a", "hello").ok());
  system_->FlipBit("/a", 1);
  EXPECT_EQ(Read("a"), "hdllo");
  EXPECT_EQ(ReadAt("a", 0, 1), "h");
  EXPECT_EQ(ReadAt("a", 1, 2), "dl");
  system_->Heal();
  EXPECT_EQ(Read("a"), "hello");
}

TEST_F(FaultFileSystemTest, ThrottleSpendsTheTimeOfEachReadAndWrite) {
  absl::Duration spent;
  system_->Throttle(1000, [&](absl::Duration time) { spent += time; });
  ASSERT_TRUE(Write("a", std::string(500, 'x')).ok());
  EXPECT_EQ(spent, absl::Milliseconds(500));
  ReadAt("a", 0, 250);
  EXPECT_EQ(spent, absl::Milliseconds(750));
}

TEST_F(FaultFileSystemTest, HookSeesCallsBeforeTheyHappen) {
  std::vector<bool> was_there;
  system_->SetHook([&](DiskIo io, const std::string& path) {
    if (io == DiskIo::kWrite) was_there.push_back(std::filesystem::exists(path));
  });
  ASSERT_TRUE(Write("a", "hello").ok());
  EXPECT_THAT(was_there, ::testing::ElementsAre(false, true));  // Made, then written.
}

}  // namespace
}  // namespace cairn::testing
