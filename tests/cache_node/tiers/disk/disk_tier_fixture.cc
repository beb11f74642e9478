#include "tests/cache_node/tiers/disk/disk_tier_fixture.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "tests/testing/child_process.h"

namespace cairn::testing {

namespace fs = std::filesystem;
using node::DiskPlace;

DiskTierFixture::DiskTierFixture() {
  options_.directory = MakeTempFolder();
  options_.bytes_max = uint64_t{1} << 30;
}

DiskTierFixture::~DiskTierFixture() {
  tier_.reset();
  std::error_code error;
  fs::remove_all(options_.directory, error);
}

void DiskTierFixture::Reopen() {
  tier_.reset();
  auto tier = node::RocksDbDiskTier::Open(options_);
  ASSERT_TRUE(tier.ok()) << tier.status();
  tier_ = *std::move(tier);
}

std::vector<DiskPlace> DiskTierFixture::AddTo(node::DiskFileBuilder* builder, uint64_t first,
                                              int count, size_t payload_bytes) {
  std::vector<DiskPlace> places;
  for (int i = 0; i < count; ++i) {
    const NumberedRecord record(first + static_cast<uint64_t>(i), payload_bytes);
    const absl::StatusOr<DiskPlace> place = builder->Add(record.record());
    EXPECT_TRUE(place.ok()) << place.status();
    if (!place.ok()) break;
    places.push_back(*place);
  }
  return places;
}

std::vector<DiskPlace> DiskTierFixture::Put(uint64_t first, int count, size_t payload_bytes) {
  auto builder = tier_->StartFile();
  EXPECT_TRUE(builder.ok()) << builder.status();
  if (!builder.ok()) return {};
  std::vector<DiskPlace> places = AddTo(builder->get(), first, count, payload_bytes);
  const absl::Status finished = (*builder)->Finish();
  EXPECT_TRUE(finished.ok()) << finished;
  return places;
}

absl::Status DiskTierFixture::Read(DiskPlace place, uint64_t number, size_t payload_bytes) {
  const NumberedRecord record(number, payload_bytes);
  std::vector<uint8_t> payload(payload_bytes);
  node::DiskRecordFields fields;
  const absl::Status status = tier_->Read(place, record.key(), absl::MakeSpan(payload), &fields);
  EXPECT_EQ(status.ok() ? record.Differs(fields, payload) : "", "") << number;
  return status;
}

std::vector<node::DiskTier::RecoveredFile> DiskTierFixture::Recover() {
  std::vector<node::DiskTier::RecoveredFile> files;
  const absl::Status status = tier_->Recover([&](node::DiskTier::RecoveredFile file) {
    files.push_back(std::move(file));
    return true;
  });
  EXPECT_TRUE(status.ok()) << status;
  return files;
}

std::vector<std::string> DiskTierFixture::PayloadPaths() const {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(options_.directory + "/payload")) {
    if (entry.path().extension() == ".sst") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

uint64_t DiskTierFixture::BytesOnDisk() const {
  uint64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(options_.directory)) {
    struct stat data {};
    if (lstat(entry.path().c_str(), &data) == 0)
      bytes += static_cast<uint64_t>(data.st_blocks) * 512;
  }
  return bytes;
}

}  // namespace cairn::testing
