// A disk that is full, fails or is slow, by script (FaultFileSystem) or for real (a small tmpfs):
// what is refused, how fast, what still works, and how the tier comes in again without a restart.
#include <gmock/gmock.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <thread>

#include "tests/cache_node/tiers/disk/disk_tier_fixture.h"
#include "tests/testing/child_process.h"
#include "tests/testing/fault_file_system.h"
#include "tests/testing/identity_samples.h"

namespace cairn::testing {
namespace {

namespace fs = std::filesystem;
using node::DiskPlace;
using node::DiskTier;
using rocksdb::IOStatus;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Health = DiskTier::Health;

const IOStatus kEio = IOStatus::IOError("Input/output error");
const IOStatus kNoSpace = IOStatus::NoSpace("No space left on device");

class DiskFaultTest : public DiskTierFixture {
 protected:
  DiskFaultTest() : system_(std::make_shared<FaultFileSystem>(rocksdb::FileSystem::Default())) {
    options_.file_system = system_;
    Reopen();
  }

  // A file of five records of 1 MB, which reach the disk while they are added.
  absl::Status TryPut(uint64_t first) {
    auto builder = tier_->StartFile();
    if (!builder.ok()) return builder.status();
    for (uint64_t i = 0; i < 5; ++i) {
      const NumberedRecord record(first + i, 1'000'000);
      const auto place = (*builder)->Add(record.record());
      if (!place.ok()) return place.status();
      place_ = *place;
    }
    return (*builder)->Finish();
  }

  std::shared_ptr<FaultFileSystem> system_;
  DiskPlace place_;  // The last that TryPut was answered.
};

TEST_F(DiskFaultTest, FullDiskRefusesWritesAndGoesOnReading) {
  const DiskPlace place = Put(1, 5)[0];
  system_->Fail(DiskIo::kWrite, "/staging/", kNoSpace);
  EXPECT_TRUE(absl::IsResourceExhausted(TryPut(10)));
  EXPECT_EQ(tier_->GetStats().health, Health::kFull);
  EXPECT_THAT(tier_->GetStats().reason, HasSubstr("No space left on device"));
  const uint64_t calls = system_->calls();
  EXPECT_TRUE(absl::IsResourceExhausted(TryPut(10)));
  EXPECT_EQ(system_->calls(), calls);
  EXPECT_TRUE(Read(place, 1).ok());
  EXPECT_TRUE(tier_->PutFence({}).ok());
  EXPECT_FALSE(tier_->Probe().ok());
  system_->Heal();
  EXPECT_TRUE(tier_->Probe().ok());
  EXPECT_EQ(tier_->GetStats().health, Health::kServing);
  EXPECT_TRUE(TryPut(10).ok());
  EXPECT_EQ(tier_->GetStats().files, 2u);
}

TEST_F(DiskFaultTest, DropMakesRoomAndTakesAFullTierInAgain) {
  const DiskPlace place = Put(1, 5)[0];
  system_->Fail(DiskIo::kWrite, "/staging/", kNoSpace, 1);
  EXPECT_TRUE(absl::IsResourceExhausted(TryPut(10)));
  EXPECT_TRUE(tier_->DropFile(place.file).ok());
  EXPECT_EQ(tier_->GetStats().health, Health::kServing);
  EXPECT_TRUE(TryPut(10).ok());
}

TEST_F(DiskFaultTest, OneWriteErrorTakesTheTierOutUntilAProbeSucceeds) {
  const DiskPlace place = Put(1, 5)[0];
  system_->FailAll("", kEio);
  EXPECT_TRUE(absl::IsUnavailable(TryPut(10)));
  EXPECT_EQ(tier_->GetStats().health, Health::kFailing);
  EXPECT_THAT(tier_->GetStats().reason, HasSubstr("Input/output error"));
  EXPECT_FALSE(tier_->Probe().ok());
  const uint64_t calls = system_->calls();
  EXPECT_TRUE(absl::IsUnavailable(Read(place, 1)));
  EXPECT_TRUE(absl::IsUnavailable(TryPut(10)));
  EXPECT_TRUE(absl::IsUnavailable(tier_->DropFile(place.file)));
  EXPECT_TRUE(absl::IsUnavailable(tier_->PutFence({})));
  EXPECT_TRUE(absl::IsUnavailable(tier_->MarkDead({{place}})));
  EXPECT_TRUE(absl::IsUnavailable(tier_->ReadLedger().status()));
  EXPECT_EQ(system_->calls(), calls);  // At once, without the disk.
  system_->Heal();
  EXPECT_TRUE(tier_->Probe().ok());
  EXPECT_TRUE(Read(place, 1).ok());
  EXPECT_TRUE(TryPut(10).ok());
}

TEST_F(DiskFaultTest, ReadErrorsInARowTakeTheTierOut) {
  const DiskPlace place = Put(1, 5)[0];
  EXPECT_TRUE(Read(place, 1).ok());
  system_->Fail(DiskIo::kRead, "/payload/", kEio, 2);
  EXPECT_TRUE(absl::IsUnavailable(Read(place, 1)));
  EXPECT_TRUE(absl::IsUnavailable(Read(place, 1)));
  EXPECT_TRUE(Read(place, 1).ok());
  EXPECT_EQ(tier_->GetStats().read_errors, 2u);
  system_->Fail(DiskIo::kRead, "/payload/", kEio);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(absl::IsUnavailable(Read(place, 1)));
  EXPECT_EQ(tier_->GetStats().health, Health::kFailing);
  system_->Heal();
  EXPECT_TRUE(tier_->Probe().ok());
  EXPECT_TRUE(Read(place, 1).ok());
}

// Every place where a file can fail on its way: nothing of it is there, not even after a restart,
// and the tier mends.
TEST_F(DiskFaultTest, FileThatFailsAnywhereIsNotThere) {
  const DiskPlace sound = Put(1, 5)[0];
  int failures = 0;
  for (DiskIo io : {DiskIo::kWrite, DiskIo::kSync, DiskIo::kName, DiskIo::kRead}) {
    for (const char* part : {"/staging/", "/payload/", "MANIFEST-", "CURRENT"}) {
      for (const IOStatus& error : {kEio, kNoSpace}) {
        SCOPED_TRACE(::testing::Message() << static_cast<int>(io) << part << error.ToString());
        system_->Fail(io, part, error);
        const bool failed = !TryPut(1000).ok();
        failures += failed ? 1 : 0;
        system_->Heal();
        ASSERT_TRUE(tier_->Probe().ok());
        const absl::Status read = Read(place_, 1004, 1'000'000);
        EXPECT_EQ(read.code(), failed ? absl::StatusCode::kNotFound : absl::StatusCode::kOk);
        EXPECT_TRUE(tier_->DropFile(place_.file).ok());
        EXPECT_EQ(tier_->GetStats().files, 1u);
        EXPECT_TRUE(Read(sound, 1).ok());
      }
    }
  }
  EXPECT_GE(failures, 8);
  Reopen();
  EXPECT_EQ(Recover().size(), 1u);
  EXPECT_TRUE(Read(sound, 1).ok());
}

TEST_F(DiskFaultTest, LedgerThatFailedIsWrittenAgainAfterAProbe) {
  DiskTier::Fence fence;
  for (uint64_t sequence = 1; sequence < 6; ++sequence) {
    for (DiskIo io : {DiskIo::kWrite, DiskIo::kSync}) {
      fence.sequence = sequence;
      const bool full = sequence % 2 == 0;
      system_->Fail(io, "/ledger/", full ? kNoSpace : kEio);
      EXPECT_FALSE(tier_->PutFence(fence).ok());
      EXPECT_NE(tier_->GetStats().health, Health::kServing);
      system_->Heal();
      ASSERT_TRUE(tier_->Probe().ok());
      ASSERT_TRUE(tier_->PutFence(fence).ok());
    }
  }
  Reopen();
  EXPECT_THAT(tier_->ReadLedger()->fences, ElementsAre(fence));
}

TEST_F(DiskFaultTest, DropThatFailedCanBeRepeatedAfterAProbe) {
  for (DiskIo io : {DiskIo::kWrite, DiskIo::kSync}) {
    const DiskPlace place = Put(1, 5)[0];
    system_->Fail(io, "MANIFEST-", kEio);
    EXPECT_TRUE(absl::IsUnavailable(tier_->DropFile(place.file)));
    system_->Heal();
    ASSERT_TRUE(tier_->Probe().ok());
    EXPECT_TRUE(tier_->DropFile(place.file).ok());
    EXPECT_EQ(tier_->GetStats().bytes_used, 0u);
  }
  Reopen();
  EXPECT_EQ(Recover().size(), 0u);
}

TEST_F(DiskFaultTest, TierThatOpensOnAFailingDiskComesInLater) {
  const DiskPlace place = Put(1, 5)[0];
  for (DiskIo io : {DiskIo::kRead, DiskIo::kWrite}) {
    tier_.reset();
    system_->Fail(io, "", kEio);
    Reopen();
    EXPECT_EQ(tier_->GetStats().health, Health::kFailing);
    EXPECT_TRUE(absl::IsUnavailable(Read(place, 1)));
    EXPECT_TRUE(absl::IsUnavailable(tier_->Recover([](auto) { return true; })));
    EXPECT_FALSE(tier_->Probe().ok());
    system_->Heal();
    EXPECT_TRUE(tier_->Probe().ok());
    EXPECT_EQ(Recover().size(), 1u);
    EXPECT_TRUE(Read(place, 1).ok());
  }
}

// One error at a time at the calls that opening makes (every third, for the time it takes):
// whatever RocksDB makes of it, nothing that is sound is given up.
TEST_F(DiskFaultTest, NoSingleErrorWhileOpeningLosesAnything) {
  const DiskPlace place = Put(1, 5)[0];
  DiskTier::Fence fence;
  fence.sequence = 3;
  ASSERT_TRUE(tier_->PutFence(fence).ok());
  bool reached = true;
  int errors = 0;
  for (int nth = 1; reached; nth += 3) {
    tier_.reset();
    int calls = 0;
    reached = false;
    system_->SetHook([&](DiskIo io, const std::string&) {
      if (++calls != nth) return;
      reached = true;
      system_->Fail(io, "", kEio, 1);
    });
    Reopen();
    errors += tier_->GetStats().health == Health::kFailing ? 1 : 0;
    system_->Heal();
    SCOPED_TRACE(::testing::Message() << "call " << nth << ": " << tier_->GetStats().reason);
    ASSERT_TRUE(tier_->Probe().ok());
    ASSERT_EQ(Recover().size(), 1u);
    ASSERT_TRUE(Read(place, 1).ok());
    ASSERT_THAT(tier_->ReadLedger()->fences, ElementsAre(fence));
  }
  EXPECT_GT(errors, 5);
}

TEST_F(DiskFaultTest, SlowDiskHoldsUpNobodyButItsCaller) {
  const DiskPlace place = Put(1, 5)[0];
  absl::Duration spent;
  system_->Throttle(20'000'000, [&](absl::Duration time) { spent += time; });
  // While bytes of a file are on their way, however long that takes, the rest of the tier is used.
  int held_up = 0;
  system_->SetHook([&](DiskIo io, const std::string& path) {
    if (io != DiskIo::kWrite || path.find("/staging/") == std::string::npos || held_up++ > 0) {
      return;
    }
    std::thread([&] {
      EXPECT_TRUE(Read(place, 1).ok());
      EXPECT_TRUE(tier_->PutFence({}).ok());
      EXPECT_EQ(tier_->GetStats().health, Health::kServing);
      auto other = tier_->StartFile();
      ASSERT_TRUE(other.ok());
      EXPECT_EQ(AddTo(other->get(), 50, 2).size(), 2u);
      EXPECT_TRUE((*other)->Finish().ok());
      EXPECT_TRUE(tier_->DropFile((*other)->file()).ok());
    }).join();
  });
  EXPECT_TRUE(TryPut(10).ok());
  EXPECT_GT(held_up, 1);
  EXPECT_GE(spent, absl::Milliseconds(250));  // 5 MB.
}

TEST_F(DiskFaultTest, CapIsNeverExceededAndFullFilesAreRefused) {
  options_.bytes_max = node::RocksDbDiskTier::kBytesMaxLeast;
  Reopen();
  std::vector<uint64_t> files;
  int refused = 0;
  for (uint64_t i = 0; i < 60; ++i) {
    const absl::Status status = TryPut(10 * i);
    EXPECT_LE(BytesOnDisk(), options_.bytes_max);
    EXPECT_LE(tier_->GetStats().bytes_used, tier_->GetStats().bytes_max);
    if (status.ok()) {
      files.push_back(place_.file);
      continue;
    }
    EXPECT_TRUE(absl::IsResourceExhausted(status));
    EXPECT_EQ(tier_->GetStats().health, Health::kFull);
    EXPECT_TRUE(absl::IsResourceExhausted(tier_->StartFile().status()));
    EXPECT_TRUE(Read({files.back(), 4}, 10 * (i - 1) + 4, 1'000'000).ok());
    EXPECT_TRUE(tier_->DropFile(files.front()).ok());
    files.erase(files.begin());
    ++refused;
    EXPECT_TRUE(TryPut(10 * i).ok());
    files.push_back(place_.file);
  }
  EXPECT_GT(refused, 20);
  EXPECT_GE(files.size(), 11u);
}

TEST_F(DiskFaultTest, RecordThatFindsNoRoomLeavesTheFileToBeFinishedWithoutIt) {
  options_.bytes_max = node::RocksDbDiskTier::kBytesMaxLeast;
  Reopen();
  auto builder = tier_->StartFile();
  ASSERT_TRUE(builder.ok());
  const DiskPlace place = AddTo(builder->get(), 1, 1, 60 << 20)[0];
  const NumberedRecord record(2, 60 << 20);
  EXPECT_TRUE(absl::IsResourceExhausted((*builder)->Add(record.record()).status()));
  EXPECT_TRUE((*builder)->Finish().ok());
  EXPECT_TRUE(Read(place, 1, 60 << 20).ok());
}

TEST_F(DiskFaultTest, ManySmallFilesAreBoundedAsTheirRoomIs) {
  options_.bytes_max = node::RocksDbDiskTier::kBytesMaxLeast;
  Reopen();
  const uint64_t used = tier_->GetStats().bytes_used;
  Put(1, 1, 16);
  EXPECT_GE(tier_->GetStats().bytes_used - used,
            tier_->GetStats().bytes_max / node::FileTable::kFilesMax);
}

// A volume of its own, where this process may mount one.
class SmallVolume {
 public:
  explicit SmallVolume(const char* size) : path_(MakeTempFolder()) {
    mounted_ = mount("tmpfs", path_.c_str(), "tmpfs", 0, size) == 0;
    if (!mounted_) std::cerr << "mounting a tmpfs: " << std::strerror(errno) << "\n";
  }
  ~SmallVolume() {
    if (mounted_) umount2(path_.c_str(), MNT_DETACH);
    std::error_code error;
    fs::remove(path_, error);
  }
  bool mounted() const { return mounted_; }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  bool mounted_ = false;
};

TEST_F(DiskFaultTest, VolumeThatIsFullForRealTakesDeadMarksAndDropsAndServesAgain) {
  const SmallVolume volume("size=96m");
  if (!volume.mounted()) {
    std::cerr << "not run without the right to mount; FullDisk... tests the same by script\n";
    return;
  }
  tier_.reset();
  options_.directory = volume.path() + "/disk";
  options_.file_system = nullptr;
  Reopen();
  const DiskPlace kept = Put(1, 5)[0];
  std::vector<uint64_t> files;
  for (uint64_t i = 0; TryPut(100 + 10 * i).ok(); ++i) files.push_back(place_.file);
  EXPECT_EQ(tier_->GetStats().health, Health::kFull);
  EXPECT_GE(files.size(), 10u);
  // To the last byte.
  std::ofstream(volume.path() + "/filler") << std::string(96 << 20, 'x') << std::flush;
  EXPECT_TRUE(absl::IsResourceExhausted(TryPut(5)));
  EXPECT_FALSE(tier_->Probe().ok());
  EXPECT_TRUE(Read(kept, 1).ok());
  EXPECT_TRUE(tier_->PutFence({}).ok());
  EXPECT_TRUE(tier_->MarkDead({{kept}}).ok());
  EXPECT_TRUE(tier_->DropFile(files[0]).ok());
  EXPECT_TRUE(TryPut(5).ok());
  while (TryPut(5).ok()) continue;
  fs::remove(volume.path() + "/filler");
  EXPECT_TRUE(tier_->Probe().ok());
  EXPECT_TRUE(Read(kept, 1).ok());
  Reopen();
  EXPECT_TRUE(Recover()[0].entries[0].dead);
  tier_.reset();
}

TEST_F(DiskFaultTest, FullVolumeDoesNotKeepTheTierFromStarting) {
  const SmallVolume volume("size=96m");
  if (!volume.mounted()) {
    std::cerr << "not run without the right to mount\n";
    return;
  }
  tier_.reset();
  options_.directory = volume.path() + "/disk";
  options_.file_system = nullptr;
  Reopen();
  const DiskPlace kept = Put(1, 5)[0];
  tier_.reset();
  std::ofstream(volume.path() + "/filler") << std::string(96 << 20, 'x') << std::flush;
  Reopen();
  EXPECT_EQ(Recover().size(), 1u);
  EXPECT_TRUE(Read(kept, 1).ok());
  fs::remove(volume.path() + "/filler");
  EXPECT_TRUE(tier_->Probe().ok());
  EXPECT_TRUE(TryPut(5).ok());
  tier_.reset();
}

}  // namespace
}  // namespace cairn::testing
