// The disk tier on a sound disk: real files in a folder of its own, written, read, dropped, and
// found again by another tier object, as by another process.
#include "cache_node/tiers/disk/rocksdb_disk_tier.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/cache_node/tiers/disk/disk_tier_fixture.h"
#include "tests/testing/identity_samples.h"

namespace cairn::testing {
namespace {

using node::DiskPlace;
using node::DiskTier;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Health = DiskTier::Health;

class RocksDbDiskTierTest : public DiskTierFixture {
 protected:
  RocksDbDiskTierTest() { Reopen(); }
};

TEST_F(RocksDbDiskTierTest, RecordsComeBackWholeAndOnlyUnderTheirKey) {
  const std::vector<DiskPlace> places = Put(1, 20);
  for (size_t i = 0; i < places.size(); ++i) {
    EXPECT_EQ(places[i].slot, i);
    EXPECT_TRUE(Read(places[i], i + 1).ok());
  }
  EXPECT_TRUE(absl::IsDataLoss(Read(places[3], 5)));
  EXPECT_TRUE(absl::IsDataLoss(Read(places[3], 4, kPayloadBytes - 1)));
  EXPECT_TRUE(absl::IsNotFound(Read({places[3].file + 1, 3}, 4)));
  EXPECT_EQ(tier_->GetStats().damaged_records, 2u);
  EXPECT_EQ(tier_->GetStats().read_bytes, 20 * kPayloadBytes);
}

TEST_F(RocksDbDiskTierTest, SizesFromNothingToMegabytesComeBack) {
  for (size_t bytes :
       {size_t{0}, size_t{1}, size_t{4096}, size_t{2} << 20, (size_t{5} << 20) + 3}) {
    const std::vector<DiskPlace> places = Put(bytes, 2, bytes);
    EXPECT_TRUE(Read(places.at(0), bytes, bytes).ok()) << bytes;
    EXPECT_TRUE(Read(places.at(1), bytes + 1, bytes).ok()) << bytes;
  }
}

TEST_F(RocksDbDiskTierTest, FileIsThereOnlyWhenFinished) {
  auto builder = tier_->StartFile();
  ASSERT_TRUE(builder.ok());
  const std::vector<DiskPlace> places = AddTo(builder->get(), 1, 3);
  EXPECT_TRUE(absl::IsNotFound(Read(places[0], 1)));
  EXPECT_GT(tier_->GetStats().bytes_used, 3 * kPayloadBytes);
  ASSERT_TRUE((*builder)->Finish().ok());
  EXPECT_TRUE(Read(places[0], 1).ok());
}

TEST_F(RocksDbDiskTierTest, FileGivenUpLeavesNothing) {
  {
    auto builder = tier_->StartFile();
    ASSERT_TRUE(builder.ok());
    AddTo(builder->get(), 1, 3);
  }
  EXPECT_EQ(tier_->GetStats().bytes_used, 0u);
  EXPECT_TRUE(std::filesystem::is_empty(options_.directory + "/staging"));
  Reopen();
  EXPECT_THAT(Recover(), IsEmpty());
}

TEST_F(RocksDbDiskTierTest, FileWithoutRecordsIsNoFile) {
  auto builder = tier_->StartFile();
  ASSERT_TRUE(builder.ok());
  EXPECT_TRUE((*builder)->Finish().ok());
  EXPECT_EQ(tier_->GetStats().files, 0u);
  EXPECT_EQ(tier_->GetStats().bytes_used, 0u);
}

TEST_F(RocksDbDiskTierTest, SeveralFilesAreBuiltAtATime) {
  std::vector<std::unique_ptr<node::DiskFileBuilder>> builders;
  for (int i = 0; i < 3; ++i) builders.push_back(*tier_->StartFile());
  std::vector<std::vector<DiskPlace>> places(3);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      places[i] = AddTo(builders[i].get(), 100 * i + 1, 50);
      EXPECT_TRUE(builders[i]->Finish().ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < 3; ++i) {
    for (size_t k = 0; k < 50; ++k) EXPECT_TRUE(Read(places[i][k], 100 * i + 1 + k).ok());
  }
}

TEST_F(RocksDbDiskTierTest, DroppedFileIsGoneFromTheDiskAndMayBeDroppedAgain) {
  const DiskPlace kept = Put(1, 5)[0];
  const DiskPlace dropped = Put(10, 50)[0];
  const uint64_t used = tier_->GetStats().bytes_used;
  ASSERT_EQ(PayloadPaths().size(), 2u);
  EXPECT_TRUE(tier_->DropFile(dropped.file).ok());
  EXPECT_TRUE(tier_->DropFile(dropped.file).ok());
  EXPECT_EQ(PayloadPaths().size(), 1u);
  EXPECT_LT(tier_->GetStats().bytes_used, used);
  EXPECT_TRUE(absl::IsNotFound(Read(dropped, 10)));
  EXPECT_TRUE(Read(kept, 1).ok());
  Reopen();
  EXPECT_TRUE(absl::IsNotFound(Read(dropped, 10)));
  EXPECT_TRUE(Read(kept, 1).ok());
}

TEST_F(RocksDbDiskTierTest, AnotherStartFindsTheFilesOldestFirst) {
  const std::vector<DiskPlace> first = Put(1, 30), second = Put(31, 3);
  const DiskTier::Stats before = tier_->GetStats();
  Reopen();
  EXPECT_EQ(tier_->GetStats().bytes_used, before.bytes_used);
  EXPECT_EQ(tier_->GetStats().files, 2u);
  const std::vector<DiskTier::RecoveredFile> files = Recover();
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].file, first[0].file);
  EXPECT_EQ(files[1].file, second[0].file);
  ASSERT_EQ(files[0].entries.size(), 30u);
  for (uint64_t i = 0; i < 30; ++i) {
    const NumberedRecord record(i + 1, kPayloadBytes);
    const DiskTier::RecoveredFile::Entry& entry = files[0].entries[i];
    EXPECT_EQ(files[0].scopes.at(entry.scope), *record.record().scope);
    EXPECT_EQ(entry.block.key, record.key());
    EXPECT_EQ(entry.block.parent, record.record().block.parent);
    EXPECT_EQ(entry.block.sequence, i + 1);
    EXPECT_EQ(entry.block.expires_unix_ms, record.record().block.expires_unix_ms);
    EXPECT_FALSE(entry.dead);
    EXPECT_TRUE(Read(first[i], i + 1).ok());
  }
  EXPECT_GT(Put(50, 1)[0].file, second[0].file);
  EXPECT_EQ(Recover().size(), 2u);  // Not what was finished since.
}

TEST_F(RocksDbDiskTierTest, DirectoryOfManyRecordsIsReadChunkByChunk) {
  constexpr int kRecords = 20'000;  // Of 8,192 a chunk.
  const std::vector<DiskPlace> places = Put(1, kRecords, 64);
  Reopen();
  const std::vector<DiskTier::RecoveredFile> files = Recover();
  ASSERT_EQ(files.size(), 1u);
  ASSERT_EQ(files[0].entries.size(), static_cast<size_t>(kRecords));
  for (uint64_t i = 0; i < kRecords; ++i) {
    ASSERT_EQ(files[0].entries[i].block.key, NumberedRecord::KeyOf(i + 1));
  }
  EXPECT_TRUE(Read(places.back(), kRecords, 64).ok());
}

TEST_F(RocksDbDiskTierTest, FileNumbersAreNeverUsedAgain) {
  const uint64_t dropped = Put(1, 1)[0].file;
  ASSERT_TRUE(tier_->DropFile(dropped).ok());
  const uint64_t given_up = (*tier_->StartFile())->file();
  Reopen();
  const uint64_t next = Put(2, 1)[0].file;
  EXPECT_GT(given_up, dropped);
  EXPECT_GT(next, given_up);
}

TEST_F(RocksDbDiskTierTest, DeadRecordsStayDeadAlsoOfAFileThatIsFinishedLater) {
  const DiskPlace early = Put(1, 3)[1];
  auto builder = tier_->StartFile();
  ASSERT_TRUE(builder.ok());
  const DiskPlace late = AddTo(builder->get(), 10, 3)[2];
  ASSERT_TRUE(tier_->MarkDead({{early, late}}).ok());
  ASSERT_TRUE((*builder)->Finish().ok());
  Reopen();
  const std::vector<DiskTier::RecoveredFile> files = Recover();
  ASSERT_EQ(files.size(), 2u);
  const auto dead = [](const DiskTier::RecoveredFile& file) {
    std::vector<bool> dead;
    for (const auto& entry : file.entries) dead.push_back(entry.dead);
    return dead;
  };
  EXPECT_THAT(dead(files[0]), ElementsAre(false, true, false));
  EXPECT_THAT(dead(files[1]), ElementsAre(false, false, true));
}

TEST_F(RocksDbDiskTierTest, LedgerKeepsNamespacesAndTheHighestFences) {
  const DiskTier::KnownNamespace chat{"alice", "chat", SampleNamespace()};
  ASSERT_TRUE(tier_->PutNamespace(chat).ok());
  DiskTier::Fence scope;
  scope.fingerprint = *FingerprintOf(chat.fields);
  scope.tenant = "alice";
  scope.scope_digest = NumberedRecord::KeyOf(1);
  scope.sequence = 9;
  ASSERT_TRUE(tier_->PutFence(scope).ok());
  DiskTier::Fence lower = scope;
  lower.sequence = 3;
  ASSERT_TRUE(tier_->PutFence(lower).ok());
  Reopen();
  absl::StatusOr<DiskTier::Ledger> ledger = tier_->ReadLedger();
  ASSERT_TRUE(ledger.ok()) << ledger.status();
  ASSERT_EQ(ledger->namespaces.size(), 1u);
  EXPECT_EQ(ledger->namespaces[0].tenant, "alice");
  EXPECT_EQ(ledger->namespaces[0].name, "chat");
  EXPECT_EQ(ledger->namespaces[0].fields, chat.fields);
  EXPECT_THAT(ledger->fences, ElementsAre(scope));
}

TEST_F(RocksDbDiskTierTest, FenceOfANamespaceForgetsItsLabels) {
  DiskTier::KnownNamespace other{"bob", "other", SampleNamespace()};
  other.fields.model = "another";
  ASSERT_TRUE(tier_->PutNamespace({"alice", "chat", SampleNamespace()}).ok());
  ASSERT_TRUE(tier_->PutNamespace({"bob", "chat", SampleNamespace()}).ok());
  ASSERT_TRUE(tier_->PutNamespace(other).ok());
  DiskTier::Fence fence;
  fence.fingerprint = *FingerprintOf(SampleNamespace());
  fence.sequence = 5;
  fence.epoch = 2;
  ASSERT_TRUE(tier_->PutFence(fence).ok());
  Reopen();
  const absl::StatusOr<DiskTier::Ledger> ledger = tier_->ReadLedger();
  ASSERT_TRUE(ledger.ok());
  ASSERT_EQ(ledger->namespaces.size(), 1u);
  EXPECT_EQ(ledger->namespaces[0].name, "other");
  EXPECT_THAT(ledger->fences, ElementsAre(fence));
}

TEST_F(RocksDbDiskTierTest, FencesThatAreNotNeededGoAndOverTheBoundTheOldestBecomeOneLine) {
  const auto put = [this](const std::string& tenant, uint64_t sequence, bool mark = false) {
    DiskTier::Fence fence;
    if (!mark) fence.fingerprint = *FingerprintOf(SampleNamespace());
    fence.tenant = tenant;
    if (!tenant.empty()) fence.scope_digest = NumberedRecord::KeyOf(sequence);
    fence.sequence = sequence;
    EXPECT_TRUE(tier_->PutFence(fence).ok());
    return fence;
  };
  const DiskTier::Fence mark = put("", 2, /*mark=*/true);
  for (uint64_t sequence = 3; sequence < 10; ++sequence) put("alice", sequence);
  const DiskTier::Fence retired = put("", 5);
  const DiskTier::Fence needed = put("alice", 10);
  const DiskTier::Fence newest = put("bob", 11);
  ASSERT_TRUE(tier_->PruneFences(/*below=*/10, /*fences_max=*/3).ok());
  Reopen();
  absl::StatusOr<DiskTier::Ledger> ledger = tier_->ReadLedger();
  ASSERT_TRUE(ledger.ok()) << ledger.status();
  EXPECT_THAT(ledger->fences, UnorderedElementsAre(mark, retired, needed, newest));
  EXPECT_EQ(ledger->dead_up_to, 0u);

  ASSERT_TRUE(tier_->PruneFences(/*below=*/10, /*fences_max=*/1).ok());
  ASSERT_TRUE(tier_->PruneFences(/*below=*/3, /*fences_max=*/1).ok()) << "and nothing goes back";
  Reopen();
  ledger = tier_->ReadLedger();
  ASSERT_TRUE(ledger.ok()) << ledger.status();
  EXPECT_THAT(ledger->fences, UnorderedElementsAre(mark, newest));
  EXPECT_EQ(ledger->dead_up_to, 10u);
}

TEST_F(RocksDbDiskTierTest, TwoTiersOnOneDirectoryTheSecondIsRefused) {
  const absl::Status second = node::RocksDbDiskTier::Open(options_).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.message()), HasSubstr(options_.directory));
  const DiskPlace place = Put(1, 1)[0];
  EXPECT_TRUE(Read(place, 1).ok());
  Reopen();
  EXPECT_TRUE(Read(place, 1).ok());
}

TEST_F(RocksDbDiskTierTest, DirectoryThatCannotBeUsedIsRefusedByName) {
  node::RocksDbDiskTierOptions options = options_;
  options.directory = options_.directory + "/LOCK/below-a-file";
  const absl::Status status = node::RocksDbDiskTier::Open(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr(options.directory));
}

TEST_F(RocksDbDiskTierTest, CapThatHoldsNothingIsRefusedWithTheLeastThatDoes) {
  options_.bytes_max = 1 << 20;
  const absl::Status status = node::RocksDbDiskTier::Open(options_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("134217728"));
}

TEST_F(RocksDbDiskTierTest, WhatAnUnknownVersionWroteIsSetAsideAndGoesWhenItsRoomIsNeeded) {
  options_.bytes_max = node::RocksDbDiskTier::kBytesMaxLeast;
  Reopen();
  const DiskPlace place = Put(1, 4, 8 << 20)[0];
  tier_.reset();
  std::ofstream(options_.directory + "/FORMAT") << "cairn-disk 2 whatever\n";
  Reopen();
  EXPECT_EQ(tier_->GetStats().health, Health::kServing);
  EXPECT_THAT(Recover(), IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(Read(place, 1, 8 << 20)));
  EXPECT_TRUE(std::filesystem::exists(options_.directory + "/set_aside/FORMAT"));
  EXPECT_GT(tier_->GetStats().bytes_used, uint64_t{32} << 20);
  const DiskPlace mine = Put(7, 6, 8 << 20)[0];
  EXPECT_TRUE(Read(mine, 7, 8 << 20).ok());
  EXPECT_FALSE(std::filesystem::exists(options_.directory + "/set_aside"));
  EXPECT_LE(BytesOnDisk(), options_.bytes_max);
}

}  // namespace
}  // namespace cairn::testing
