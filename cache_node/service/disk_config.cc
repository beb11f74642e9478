#include "cache_node/service/disk_config.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cache_node/tiers/disk/rocksdb_disk_tier.h"
#include "common/base/check.h"

namespace cairn::node {
namespace {

constexpr ByteSize kBytesMin(RocksDbDiskTier::kBytesMaxLeast);
constexpr ByteSize kBytesMax = ByteSize::GiB(1 << 20);
constexpr ByteSize kBlockBytesMax = ByteSize::MiB(256);
constexpr ByteSize kFileBytesMin = ByteSize::MiB(1);
constexpr ByteSize kFileBytesDefault = ByteSize::MiB(256);
// A file that leaves should be a small part of all.
constexpr uint64_t kFilesMin = 8;
constexpr uint64_t kFilesDefault = 16;
// Free before the disk is full: the file that is being written, the one that takes what is worth
// keeping of a file that leaves, and one to leave.
constexpr uint64_t kHeadroomFiles = 3;
// Of the bytes that it may take, those for files of blocks.
ByteSize PayloadBytes(ByteSize bytes) {
  return ByteSize(bytes.bytes() - RocksDbDiskTier::kOverheadBytes);
}

constexpr size_t kDirBytesMax = 4096;
constexpr char kAlways[] = "always";
constexpr char kSecondTouch[] = "second-touch";

}  // namespace

void DiskConfig::Check(ByteSize host_memory, ConfigErrors& errors) const {
  errors.Check(spill_admission == kAlways || spill_admission == kSecondTouch, "spill-admission",
               spill_admission, absl::StrCat(kAlways, " or ", kSecondTouch));
  errors.CheckRange("disk-index-memory", index_memory, ByteSize::MiB(1), ByteSize::GiB(1 << 10));
  errors.CheckRange("disk-read-threads", int64_t{read_threads}, int64_t{1}, int64_t{64});
  errors.CheckRange("spill-block-bytes", spill_block_bytes, ByteSize::KiB(64), kBlockBytesMax);
  errors.CheckRange("spill-queue-bytes", spill_queue_bytes, ByteSize::MiB(1), kBytesMax);
  errors.CheckRange("spill-pinned-bytes", spill_pinned_bytes, ByteSize(),
                    ByteSize(host_memory.bytes() / 2));
  errors.CheckRange("spill-file-age-ms", spill_file_age, absl::Milliseconds(1), absl::Minutes(10));
  if (!on()) {
    errors.Check(bytes.bytes() == 0, "disk-bytes", bytes.ToString(),
                 "left out without --disk-dir, the directory of the disk tier");
    return;
  }
  errors.Check(dir.size() <= kDirBytesMax, "disk-dir", dir.substr(0, kDirBytesMax),
               absl::StrCat("at most ", kDirBytesMax, " bytes"));
  if (bytes < kBytesMin || bytes > kBytesMax) {
    errors.Check(false, "disk-bytes", bytes.ToString(),
                 absl::StrCat("from ", kBytesMin.ToString(), " to ", kBytesMax.ToString(),
                              ": what the disk tier may take in --disk-dir"));
  } else if (spill_file_bytes.bytes() != 0) {
    errors.CheckRange("spill-file-bytes", spill_file_bytes, kFileBytesMin,
                      ByteSize(PayloadBytes(bytes).bytes() / kFilesMin));
  }
}

ByteSize DiskConfig::SpillFileBytes() const {
  if (spill_file_bytes.bytes() != 0) return spill_file_bytes;
  return std::min(kFileBytesDefault, ByteSize(PayloadBytes(bytes).bytes() / kFilesDefault));
}

DiskOptions DiskConfig::StoreOptions() const {
  CAIRN_CHECK(on());
  DiskOptions options;
  options.admission =
      spill_admission == kAlways ? SpillAdmission::kAlways : SpillAdmission::kSecondTouch;
  options.bytes_max = bytes.bytes();
  options.block_bytes_max = spill_block_bytes.bytes();
  options.index_bytes_max = index_memory.bytes();
  options.spill_queue_bytes_max = spill_queue_bytes.bytes();
  options.spilling_bytes_max = spill_pinned_bytes.bytes();
  return options;
}

SpillWriter::Options DiskConfig::SpillOptions(uint64_t writer) const {
  return {
      .file_bytes_max = SpillFileBytes().bytes(), .file_age_max = spill_file_age, .writer = writer};
}

FileReclaimer::Options DiskConfig::ReclaimOptions(uint64_t writer) const {
  return {.headroom_bytes = kHeadroomFiles * SpillFileBytes().bytes(), .writer = writer};
}

}  // namespace cairn::node
