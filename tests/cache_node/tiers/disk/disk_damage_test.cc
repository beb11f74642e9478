// What happens to files while nobody looks: bytes change, files end early, files vanish, whole
// databases are damaged. Done to the real files, mostly between two starts. Each time the tier
// opens and serves, what it answers is right, and what is lost is what was damaged.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "tests/cache_node/tiers/disk/disk_tier_fixture.h"
#include "tests/testing/fault_file_system.h"

namespace cairn::testing {
namespace {

namespace fs = std::filesystem;
using node::DiskPlace;
using node::DiskTier;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Health = DiskTier::Health;

class DiskDamageTest : public DiskTierFixture {
 protected:
  DiskDamageTest() : system_(std::make_shared<FaultFileSystem>(rocksdb::FileSystem::Default())) {
    options_.file_system = system_;
    Reopen();
  }

  static void FlipByte(const std::string& path, uint64_t offset) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    const char byte = static_cast<char>(file.get() ^ 0x40);
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(byte);
    ASSERT_TRUE(file.good());
  }

  // How many of `places`, of records first, first + 1, ..., are read; all of those are right.
  int Readable(const std::vector<DiskPlace>& places, uint64_t first) {
    int readable = 0;
    for (size_t i = 0; i < places.size(); ++i) readable += Read(places[i], first + i).ok() ? 1 : 0;
    return readable;
  }

  std::shared_ptr<FaultFileSystem> system_;
};

TEST_F(DiskDamageTest, FlippedBitOfARecordIsItsLossAndNoOther) {
  const std::vector<DiskPlace> places = Put(1, 10);
  system_->FlipBit("/payload/", 3 * kPayloadBytes);
  int lost = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    const absl::Status status = Read(places[i], i + 1);
    EXPECT_TRUE(status.ok() || absl::IsDataLoss(status)) << status;
    lost += status.ok() ? 0 : 1;
  }
  EXPECT_EQ(lost, 1);
  EXPECT_EQ(tier_->GetStats().damaged_records, 1u);
  EXPECT_EQ(tier_->GetStats().health, Health::kServing);
  system_->Heal();
  EXPECT_EQ(Readable(places, 1), 10);
}

TEST_F(DiskDamageTest, AnyByteOfAFileMayChangeBetweenTwoStarts) {
  const std::vector<DiskPlace> sound = Put(100, 3);
  std::mt19937_64 random(1);
  uint64_t number = 1000;
  for (int round = 0; round < 40; ++round) {
    const std::vector<DiskPlace> places = Put(number, 4);
    const std::string path = PayloadPaths().back();
    const uint64_t size = fs::file_size(path);
    // Every other time near the end, where the index and the directory are.
    const uint64_t offset = round % 2 == 0 ? random() % size : size - 1 - random() % 2000;
    tier_.reset();
    FlipByte(path, offset);
    SCOPED_TRACE(::testing::Message()
                 << "round " << round << ", byte " << offset << " of " << size);
    Reopen();
    EXPECT_EQ(tier_->GetStats().health, Health::kServing);
    Recover();
    EXPECT_EQ(Readable(sound, 100), 3);
    Readable(places, number);
    EXPECT_TRUE(tier_->DropFile(places[0].file).ok());
    number += 10;
  }
  EXPECT_EQ(tier_->GetStats().files, 1u);
}

TEST_F(DiskDamageTest, FileCutShortIsGoneAndTheOthersAreThere) {
  const std::vector<DiskPlace> first = Put(1, 5), cut = Put(11, 5), last = Put(21, 5);
  tier_.reset();
  const std::string path = PayloadPaths()[1];
  fs::resize_file(path, fs::file_size(path) / 2);
  Reopen();
  EXPECT_EQ(Recover().size(), 2u);
  EXPECT_EQ(tier_->GetStats().damaged_files, 1u);
  EXPECT_EQ(tier_->GetStats().files, 2u);
  EXPECT_EQ(Readable(first, 1) + Readable(last, 21), 10);
  EXPECT_TRUE(absl::IsNotFound(Read(cut[0], 11)));
  EXPECT_GT(Put(31, 1)[0].file, last[0].file);
}

TEST_F(DiskDamageTest, FileCutShortUnderARunningTierIsAMiss) {
  const std::vector<DiskPlace> places = Put(1, 5);
  fs::resize_file(PayloadPaths()[0], 100);
  for (size_t i = 0; i < places.size(); ++i) EXPECT_TRUE(absl::IsDataLoss(Read(places[i], i + 1)));
  EXPECT_EQ(tier_->GetStats().health, Health::kServing);
  EXPECT_TRUE(tier_->DropFile(places[0].file).ok());
}

TEST_F(DiskDamageTest, FileDeletedBetweenTwoStartsIsGoneAndTheOthersAreThere) {
  const std::vector<DiskPlace> first = Put(1, 5), gone = Put(11, 5), last = Put(21, 5);
  ASSERT_TRUE(tier_->MarkDead({{last[1]}}).ok());
  tier_.reset();
  fs::remove(PayloadPaths()[1]);
  Reopen();
  const std::vector<DiskTier::RecoveredFile> files = Recover();
  ASSERT_EQ(files.size(), 2u);
  EXPECT_TRUE(files[1].entries[1].dead);
  EXPECT_EQ(Readable(first, 1) + Readable(last, 21), 10);
  EXPECT_TRUE(absl::IsNotFound(Read(gone[0], 11)));
  Reopen();
  EXPECT_EQ(Recover().size(), 2u);
}

TEST_F(DiskDamageTest, FileDeletedUnderARunningTierIsAMissAndItsDropIsOk) {
  options_.open_files_max = 16;  // So that some are not open any more.
  Reopen();
  std::vector<DiskPlace> places;
  for (uint64_t i = 0; i < 40; ++i) places.push_back(Put(i + 1, 1)[0]);
  for (const std::string& path : PayloadPaths()) fs::remove(path);
  int missed = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    const absl::Status status = Read(places[i], i + 1);
    EXPECT_TRUE(status.ok() || absl::IsNotFound(status)) << status;
    missed += status.ok() ? 0 : 1;
  }
  EXPECT_GT(missed, 20);
  EXPECT_EQ(tier_->GetStats().health, Health::kServing);
  for (const DiskPlace& place : places) EXPECT_TRUE(tier_->DropFile(place.file).ok());
  EXPECT_EQ(tier_->GetStats().bytes_used, 0u);
  const DiskPlace next = Put(100, 1)[0];
  EXPECT_TRUE(Read(next, 100).ok());
}

TEST_F(DiskDamageTest, LostManifestIsRebuiltFromTheFiles) {
  const std::vector<DiskPlace> first = Put(1, 5), second = Put(11, 5);
  ASSERT_TRUE(tier_->DropFile(Put(21, 1)[0].file).ok());
  const std::string payload = options_.directory + "/payload";
  for (const std::string& lost : {payload + "/CURRENT", std::string("MANIFEST-")}) {
    tier_.reset();
    for (const auto& entry : fs::directory_iterator(payload)) {
      if (entry.path().string().find(lost) != std::string::npos) fs::remove(entry.path());
    }
    Reopen();
    EXPECT_EQ(tier_->GetStats().health, Health::kServing);
    EXPECT_EQ(Recover().size(), 2u) << lost;
    EXPECT_EQ(Readable(first, 1) + Readable(second, 11), 10);
    EXPECT_EQ(tier_->GetStats().damaged_files, 0u);
  }
  EXPECT_TRUE(tier_->DropFile(first[0].file).ok());
  EXPECT_EQ(PayloadPaths().size(), 1u);
}

TEST_F(DiskDamageTest, KilledWhileItRebuiltItGoesOnWhereItWas) {
  const std::vector<DiskPlace> first = Put(1, 5), second = Put(11, 5);
  tier_.reset();
  // As it would be after the first of two files was moved back, and linked but not yet unlinked.
  const std::string rebuild = options_.directory + "/rebuild";
  fs::create_directory(rebuild);
  fs::copy_file(PayloadPaths()[0], rebuild + "/0-000001.sst");
  fs::rename(PayloadPaths()[1], rebuild + "/0-000002.sst");
  fs::remove(options_.directory + "/payload/CURRENT");
  Reopen();
  EXPECT_EQ(Recover().size(), 2u);
  EXPECT_EQ(Readable(first, 1) + Readable(second, 11), 10);
  EXPECT_FALSE(fs::exists(rebuild));
}

TEST_F(DiskDamageTest, DamagedLedgerTakesThePayloadWithItSinceFencesMayBeMissing) {
  const std::string ledger = options_.directory + "/ledger";
  for (const char* damage : {"CURRENT", "MANIFEST-", ".log", "all"}) {
    const std::vector<DiskPlace> places = Put(1, 5);
    ASSERT_TRUE(tier_->PutFence({}).ok());
    tier_.reset();
    for (const auto& entry : fs::directory_iterator(ledger)) {
      const bool chosen = entry.path().string().find(damage) != std::string::npos;
      if (chosen || damage == std::string("all")) fs::remove_all(entry.path());
    }
    Reopen();
    EXPECT_EQ(tier_->GetStats().health, Health::kServing) << damage;
    EXPECT_THAT(Recover(), IsEmpty()) << damage;
    EXPECT_TRUE(absl::IsNotFound(Read(places[0], 1)));
    EXPECT_EQ(tier_->GetStats().damaged_files, 1u);
    EXPECT_THAT(tier_->ReadLedger()->fences, IsEmpty());
    EXPECT_EQ(Readable(Put(50, 2), 50), 2);
  }
}

// What another node has made there meanwhile is not touched, and what comes back is taken in again.
TEST_F(DiskDamageTest, FolderMovedAwayUnderARunningTierTakesItOutUntilItIsBack) {
  const DiskPlace place = Put(1, 5)[0];
  const std::string away = options_.directory + ".away";
  fs::rename(options_.directory, away);
  const std::string of_another = options_.directory + "/staging/of_another.sst";
  fs::create_directories(options_.directory + "/staging");
  std::ofstream(options_.directory + "/LOCK") << "";
  std::ofstream(of_another) << "";
  EXPECT_TRUE(absl::IsUnavailable(tier_->StartFile().status()));
  EXPECT_EQ(tier_->GetStats().health, Health::kFailing);
  EXPECT_THAT(tier_->GetStats().reason, HasSubstr(options_.directory));
  EXPECT_TRUE(absl::IsUnavailable(tier_->Probe()));
  EXPECT_TRUE(fs::exists(of_another));
  fs::remove_all(options_.directory);
  fs::rename(away, options_.directory);
  EXPECT_TRUE(tier_->Probe().ok());
  EXPECT_EQ(tier_->GetStats().health, Health::kServing);
  EXPECT_TRUE(Read(place, 1).ok());
  Put(21, 5);
}

TEST_F(DiskDamageTest, FileThatIsBuiltWhileItsFolderGoesIsNotThere) {
  auto builder = tier_->StartFile();
  ASSERT_TRUE(builder.ok());
  AddTo(builder->get(), 1, 5);
  const std::string away = options_.directory + ".away";
  fs::rename(options_.directory, away);
  EXPECT_TRUE(absl::IsUnavailable((*builder)->Finish()));
  EXPECT_TRUE(absl::IsUnavailable(tier_->PutFence({})));
  EXPECT_EQ(tier_->GetStats().health, Health::kFailing);
  EXPECT_FALSE(fs::exists(options_.directory));
  fs::rename(away, options_.directory);
  EXPECT_TRUE(tier_->Probe().ok());
  EXPECT_EQ(tier_->GetStats().files, 0u);
}

TEST_F(DiskDamageTest, StagingFolderThatWasDeletedIsMadeAgain) {
  fs::remove_all(options_.directory + "/staging");
  auto builder = tier_->StartFile();
  ASSERT_TRUE(builder.ok());
  const NumberedRecord record(1, kPayloadBytes);
  EXPECT_FALSE((*builder)->Add(record.record()).ok());
  EXPECT_EQ(tier_->GetStats().health, Health::kFailing);
  EXPECT_EQ(tier_->GetStats().write_errors, 1u);
  EXPECT_TRUE(tier_->Probe().ok());
  EXPECT_TRUE(Read(Put(1, 5)[0], 1).ok());
}

TEST_F(DiskDamageTest, LeftoverFilesAreDeletedAtTheStart) {
  const DiskPlace place = Put(1, 1)[0];
  tier_.reset();
  std::ofstream(options_.directory + "/staging/00000000000000000099.sst") << "half a file";
  std::ofstream(options_.directory + "/payload/999999.sst") << "not in the manifest";
  Reopen();
  EXPECT_TRUE(fs::is_empty(options_.directory + "/staging"));
  EXPECT_EQ(PayloadPaths().size(), 1u);
  EXPECT_TRUE(Read(place, 1).ok());
}

}  // namespace
}  // namespace cairn::testing
