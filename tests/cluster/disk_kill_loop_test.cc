// kill -9 of the real node with its disk tier, in loops under a seed: while blocks come back from
// disk, while files are removed to make room, while it finds what is on disk, and while scopes are
// cleared and the namespace is retired. After each start what is served is right, what was said to
// be gone stays gone, and the disk takes no more than it may.
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/cluster/disk_fixture.h"
#include "tests/cluster/disk_history.h"
#include "tests/cluster/disk_load.h"

namespace cairn::testing {
namespace {

constexpr uint64_t kDiskBytes = uint64_t{128} << 20;
// Read after each start, beside all that must be gone.
constexpr size_t kPromptsRead = 20;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class DiskKillLoopTest : public DiskTest {
 protected:
  DiskKillLoopTest()
      : seed_(FromEnvironment("CAIRN_TEST_SEED", 20261130)),
        kills_(FromEnvironment("CAIRN_TEST_KILLS", 4)),
        random_(seed_) {
    std::cerr << "CAIRN_TEST_SEED=" << seed_ << " CAIRN_TEST_KILLS=" << kills_ << "\n";
  }

  static std::vector<std::string> Flags() {
    return {absl::StrCat("--disk-bytes=", kDiskBytes), "--spill-file-bytes=4MiB"};
  }
  void Start() {
    ASSERT_NO_FATAL_FAILURE(StartDiskNode(Flags()));
    ASSERT_TRUE(AwaitRecovered());
  }
  uint64_t Between(uint64_t least, uint64_t most) { return least + random_() % (most - least + 1); }

  // So many at a time that none is evicted before it is written.
  void PutOnDiskAll(uint32_t count) {
    constexpr uint32_t kAtOnce = kPoolBlocks / kPromptBlocks / 4;
    for (uint32_t i = 0; i < count; ++i) {
      const DiskHistory::PromptName name = history_.NewPrompt("a");
      ASSERT_NO_FATAL_FAILURE(Put(name.number, name.salt));
      history_.WasPut(name);
      if ((i + 1) % kAtOnce > 0 && i + 1 < count) continue;
      ASSERT_TRUE(AwaitDisk(
          [&](const v1::DiskReport& disk) { return disk.blocks() == (i + 1) * kPromptBlocks; }));
    }
  }

  // Runs a load until its kill is due, and kills the node under it.
  void KillUnder(DiskLoad::Options options) {
    options.address = node().address();
    options.seed = random_();
    options.prompt_blocks = kPromptBlocks;
    DiskLoad load(options, &history_);
    ASSERT_TRUE(load.AwaitKillDue(kSoon));
    node().Kill9();
    load.End();
    EXPECT_EQ(load.breach(), "");
    blocks_read_ += load.blocks_read();
    EXPECT_LE(BytesOnDisk(), kDiskBytes);
  }

  // Starts the node, holds what it serves against what it had answered, and its disk against its
  // cap.
  void StartAndCheck() {
    ASSERT_NO_FATAL_FAILURE(Start());
    EXPECT_LE(BytesOnDisk(), kDiskBytes);
    std::vector<DiskHistory::PromptName> prompts = history_.PutSoFar();
    std::shuffle(prompts.begin(), prompts.end(), random_);
    size_t read = 0;
    for (const DiskHistory::PromptName& name : prompts) {
      const bool gone = history_.IsGone(name);
      if (!gone && ++read > kPromptsRead) continue;
      SCOPED_TRACE(absl::StrCat("prompt ", name.number, " of ", name.salt));
      const LeasedRead answer = ReadPrompt(name.number, name.salt);
      EXPECT_EQ(answer.wrong, 0u);
      EXPECT_TRUE(!gone || answer.present == 0) << "was gone before";
      blocks_read_ += answer.usable;
    }
    EXPECT_EQ(Disk().damaged(), 0u);
    EXPECT_EQ(Disk().errors(), 0u);
  }

  std::set<std::string> PayloadFiles() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(disk_dir() + "/payload")) {
      if (entry.path().extension() == ".sst") names.insert(entry.path().filename().string());
    }
    return names;
  }
  uint64_t BytesOnDisk() const {
    uint64_t bytes = 0;
    std::error_code gone;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(disk_dir(), gone)) {
      struct stat data {};
      if (lstat(entry.path().c_str(), &data) != 0) continue;
      bytes += static_cast<uint64_t>(data.st_blocks) * 512;
    }
    return bytes;
  }

  const uint64_t seed_;
  const uint64_t kills_;
  std::mt19937_64 random_;
  DiskHistory history_;
  uint64_t blocks_read_ = 0;
};

TEST_F(DiskKillLoopTest, WhileBlocksComeBackFromDisk) {
  constexpr uint32_t kPrompts = 2 * kPoolBlocks / kPromptBlocks;
  ASSERT_NO_FATAL_FAILURE(Start());
  ASSERT_NO_FATAL_FAILURE(PutOnDiskAll(kPrompts));
  for (uint64_t i = 0; i < kills_ && !HasFailure(); ++i) {
    SCOPED_TRACE(absl::StrCat("kill ", i));
    ASSERT_NO_FATAL_FAILURE(
        KillUnder({.put = 0, .read = 3, .prefetch = 2, .calls_until_kill = Between(1, 60)}));
    ASSERT_NO_FATAL_FAILURE(StartAndCheck());
    EXPECT_EQ(Disk().blocks(), kPrompts * kPromptBlocks) << "reading lost some";
  }
  EXPECT_GT(blocks_read_, kills_ * kPromptsRead * kPromptBlocks / 2);
}

TEST_F(DiskKillLoopTest, WhileFilesAreRemoved) {
  ASSERT_NO_FATAL_FAILURE(Start());
  std::set<std::string> first;
  for (uint64_t i = 0; i < kills_ && !HasFailure(); ++i) {
    SCOPED_TRACE(absl::StrCat("kill ", i));
    if (i == 1) first = PayloadFiles();
    // The first fills the disk.
    const uint64_t calls = (i == 0 ? 200 : 0) + Between(30, 120);
    ASSERT_NO_FATAL_FAILURE(
        KillUnder({.put = 4, .read = 1, .prefetch = 0, .calls_until_kill = calls}));
    ASSERT_NO_FATAL_FAILURE(StartAndCheck());
    EXPECT_LE(Disk().bytes_used(), Disk().bytes_max());
  }
  const std::set<std::string> last = PayloadFiles();
  EXPECT_FALSE(std::includes(last.begin(), last.end(), first.begin(), first.end()))
      << "none of " << first.size() << " files had to leave";
  EXPECT_GT(blocks_read_, 0u);
}

TEST_F(DiskKillLoopTest, WhileItFindsWhatIsOnDisk) {
  constexpr uint32_t kPrompts = 2 * kPoolBlocks / kPromptBlocks;
  ASSERT_NO_FATAL_FAILURE(Start());
  ASSERT_NO_FATAL_FAILURE(PutOnDiskAll(kPrompts));
  node().Kill9();
  const absl::Time began = absl::Now();
  ASSERT_NO_FATAL_FAILURE(Start());
  const absl::Duration takes = absl::Now() - began;
  std::vector<std::string> command = {absl::StrCat(CAIRN_BIN_DIR, "/cairn-node"), "--insecure",
                                      "--node-id=test", "--listen=127.0.0.1:0",
                                      "--metrics-listen="};
  for (const auto& flags : {DiskFlags(), Flags()}) {
    command.insert(command.end(), flags.begin(), flags.end());
  }
  for (uint64_t i = 0; i < 3 * kills_ && !HasFailure(); ++i) {
    node().Kill9();
    // It dies at any moment of its start.
    ChildProcess::Options options;
    options.command = command;
    options.log_path = disk_dir() + ".log";
    const auto doomed = ChildProcess::Start(options);
    ASSERT_TRUE(doomed.ok()) << doomed.status();
    const absl::Duration lives = takes * (static_cast<double>(Between(0, 1000)) / 1000);
    EXPECT_EQ((*doomed)->WaitExit(lives), std::nullopt) << "gave up: " << (*doomed)->Log();
    (*doomed)->Kill9();
    if (i % 3 < 2) continue;
    SCOPED_TRACE(absl::StrCat("kill ", i));
    ASSERT_NO_FATAL_FAILURE(StartAndCheck());
    EXPECT_EQ(Disk().blocks(), kPrompts * kPromptBlocks) << "starting lost some";
  }
}

TEST_F(DiskKillLoopTest, WhileScopesAreClearedAndTheNamespaceIsRetired) {
  ASSERT_NO_FATAL_FAILURE(Start());
  for (uint64_t i = 0; i < kills_ && !HasFailure(); ++i) {
    SCOPED_TRACE(absl::StrCat("kill ", i));
    ASSERT_NO_FATAL_FAILURE(KillUnder({.salts = {"a", "b", "c"},
                                       .put = 16,
                                       .read = 4,
                                       .prefetch = 2,
                                       .clear = 3,
                                       .retire = i % 2 == 0 ? 1u : 0u,
                                       .calls_until_kill = Between(30, 120)}));
    ASSERT_NO_FATAL_FAILURE(StartAndCheck());
  }
  EXPECT_GT(history_.gone(), kills_);
  EXPECT_LT(history_.gone(), history_.PutSoFar().size()) << "nothing was left to read";
}

}  // namespace
}  // namespace cairn::testing
