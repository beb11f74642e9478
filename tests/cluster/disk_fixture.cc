#include "tests/cluster/disk_fixture.h"

#include <filesystem>

#include "absl/strings/str_cat.h"

namespace cairn::testing {

DiskTest::DiskTest() : folder_(MakeTempFolder()), disk_dir_(absl::StrCat(folder_, "/disk")) {}

DiskTest::~DiskTest() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::vector<std::string> DiskTest::DiskFlags() const {
  return {"--host-memory=16MiB",
          "--memory-limit=1GiB",
          "--disk-bytes=256MiB",
          "--disk-index-memory=8MiB",
          "--spill-block-bytes=1MiB",
          "--spill-file-age-ms=20",
          absl::StrCat("--disk-dir=", disk_dir_)};
}

void DiskTest::StartDiskNode(const std::vector<std::string>& flags) {
  std::vector<std::string> all = DiskFlags();
  all.insert(all.end(), flags.begin(), flags.end());
  ASSERT_NO_FATAL_FAILURE(StartNode(std::move(all)));
  client_ = NewClient();
  name_space_ = std::make_unique<NamespaceHandle>(Register(client(), SmallBlocks()));
}

std::unique_ptr<NumberedPrompt> DiskTest::MakePrompt(uint32_t number,
                                                     const std::string& salt) const {
  return std::make_unique<NumberedPrompt>(**client_, *name_space_, number, kPromptBlocks, salt);
}

void DiskTest::Put(uint32_t number, const std::string& salt) {
  const absl::StatusOr<PutResult> put =
      PutPrompt(client(), name_space(), MakePrompt(number, salt)->prompt(), true);
  ASSERT_TRUE(put.ok()) << put.status();
  ASSERT_TRUE(put->complete());
}

void DiskTest::PutOnDisk(uint32_t first, uint32_t count, const std::string& salt) {
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t before = Disk().blocks();
    ASSERT_NO_FATAL_FAILURE(Put(first + i, salt));
    ASSERT_TRUE(AwaitDisk(
        [&](const v1::DiskReport& disk) { return disk.blocks() >= before + kPromptBlocks; }));
  }
}

LeasedRead DiskTest::ReadPrompt(uint32_t number, const std::string& salt) {
  LookupOptions options;
  options.wait = absl::Seconds(10);
  const absl::StatusOr<LeasedRead> read =
      LeaseAndCompare(client(), name_space(), *MakePrompt(number, salt), options);
  EXPECT_TRUE(read.ok()) << read.status();
  if (!read.ok()) return {};
  EXPECT_TRUE(read->get.ok()) << read->get;
  return *read;
}

bool DiskTest::AwaitDisk(absl::FunctionRef<bool(const v1::DiskReport&)> condition) {
  v1::DiskReport last;
  const bool met = AwaitDescribe([&](const v1::DescribeResponse& node) {
    last = node.node().disk();
    return condition(last);
  });
  EXPECT_TRUE(met) << last.DebugString();
  return met;
}

bool DiskTest::AwaitRecovered() {
  return AwaitDisk([](const v1::DiskReport& disk) { return !disk.recovering(); });
}

}  // namespace cairn::testing
