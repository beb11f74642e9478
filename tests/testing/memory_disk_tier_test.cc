// The fake disk tier held to the contract of the real one, and its script to what it says. The tier
// is driven step by step; another process is another life of it.
#include "tests/testing/memory_disk_tier.h"

#include <gmock/gmock.h>

#include <utility>

#include "tests/testing/identity_samples.h"

namespace cairn::testing {
namespace {

using node::DiskPlace;
using node::DiskRecord;
using node::DiskRecordFields;
using node::DiskScope;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Health = node::DiskTier::Health;

constexpr uint64_t kPayloadBytes = 1000;
constexpr uint64_t kRecordBytes = MemoryDiskTier::kRecordBytesBeside + kPayloadBytes;

BlockKey Key(uint8_t number) {
  BlockKey key;
  key.bytes.fill(number);
  return key;
}

class MemoryDiskTierTest : public ::testing::Test {
 protected:
  MemoryDiskTierTest() { scope_.tenant = "alice"; }

  absl::StatusOr<DiskPlace> Add(node::DiskFileBuilder* builder, uint8_t number) {
    const std::vector<uint8_t> payload(kPayloadBytes, number);
    DiskRecord record;
    record.block.key = Key(number);
    record.block.payload_bytes = kPayloadBytes;
    record.scope = &scope_;
    record.payload = payload;
    return builder->Add(record);
  }

  // One finished file of one record each.
  DiskPlace Put(uint8_t number) {
    auto builder = tier_.StartFile();
    EXPECT_TRUE(builder.ok()) << builder.status();
    const absl::StatusOr<DiskPlace> place = Add(builder->get(), number);
    EXPECT_TRUE(place.ok()) << place.status();
    EXPECT_TRUE((*builder)->Finish().ok());
    return *place;
  }

  absl::StatusCode Read(DiskPlace place, uint8_t number) {
    std::vector<uint8_t> payload(kPayloadBytes);
    DiskRecordFields fields;
    const absl::Status status = tier_.Read(place, Key(number), absl::MakeSpan(payload), &fields);
    if (status.ok()) {
      EXPECT_EQ(payload, std::vector<uint8_t>(kPayloadBytes, number));
      EXPECT_EQ(fields.scope, scope_);
    }
    return status.code();
  }

  std::vector<uint64_t> Recover() {
    std::vector<uint64_t> files;
    EXPECT_TRUE(tier_
                    .Recover([&](node::DiskTier::RecoveredFile file) {
                      files.push_back(file.file);
                      return true;
                    })
                    .ok());
    return files;
  }

  DiskScope scope_;
  MemoryDiskTier tier_{10 * kRecordBytes};
};

TEST_F(MemoryDiskTierTest, RecordComesBackOnlyUnderItsOwnKeyAndSize) {
  const DiskPlace place = Put(1);
  EXPECT_EQ(Read(place, 1), absl::StatusCode::kOk);
  EXPECT_EQ(Read(place, 2), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Read({place.file, 1}, 1), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Read({place.file + 1, 0}, 1), absl::StatusCode::kNotFound);
  std::vector<uint8_t> small(kPayloadBytes - 1);
  EXPECT_TRUE(absl::IsDataLoss(tier_.Read(place, Key(1), absl::MakeSpan(small), nullptr)));
  EXPECT_EQ(tier_.GetStats().damaged_records, 3u);
  EXPECT_EQ(tier_.GetStats().read_bytes, kPayloadBytes);
}

TEST_F(MemoryDiskTierTest, FileThatIsNotFinishedLeavesNothing) {
  auto builder = tier_.StartFile();
  ASSERT_TRUE(builder.ok());
  const DiskPlace place = *Add(builder->get(), 1);
  EXPECT_EQ(tier_.GetStats().bytes_used, kRecordBytes);
  EXPECT_EQ(Read(place, 1), absl::StatusCode::kNotFound);
  builder->reset();
  EXPECT_EQ(tier_.GetStats().bytes_used, 0u);
  EXPECT_THAT(tier_.files(), IsEmpty());
  EXPECT_GT(Put(2).file, place.file);
}

TEST_F(MemoryDiskTierTest, DroppedFileFreesItsBytesAndMayBeDroppedAgain) {
  const DiskPlace place = Put(1);
  EXPECT_TRUE(tier_.DropFile(place.file).ok());
  EXPECT_TRUE(tier_.DropFile(place.file).ok());
  EXPECT_EQ(Read(place, 1), absl::StatusCode::kNotFound);
  EXPECT_EQ(tier_.GetStats().bytes_used, 0u);
}

TEST_F(MemoryDiskTierTest, FullTierRefusesWritesAndReadsUntilSomethingIsDropped) {
  const DiskPlace first = Put(1);
  for (uint8_t i = 2; i <= 10; ++i) Put(i);
  auto builder = tier_.StartFile();
  ASSERT_TRUE(builder.ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Add(builder->get(), 11).status()));
  EXPECT_EQ(tier_.GetStats().health, Health::kFull);
  EXPECT_TRUE(absl::IsResourceExhausted(tier_.StartFile().status()));
  EXPECT_TRUE(absl::IsResourceExhausted(tier_.Probe()));
  EXPECT_EQ(Read(first, 1), absl::StatusCode::kOk);
  EXPECT_TRUE(tier_.DropFile(first.file).ok());
  EXPECT_EQ(tier_.GetStats().health, Health::kServing);
  EXPECT_TRUE(Add(builder->get(), 11).ok());
}

TEST_F(MemoryDiskTierTest, AnotherLifeFindsFinishedFilesOldestFirstAndTheLedger) {
  const DiskPlace first = Put(1), second = Put(2);
  ASSERT_TRUE(tier_.MarkDead({{second}}).ok());
  node::DiskTier::Fence fence;
  fence.tenant = "alice";
  fence.sequence = 7;
  ASSERT_TRUE(tier_.PutFence(fence).ok());
  auto unfinished = tier_.StartFile();
  ASSERT_TRUE(unfinished.ok() && Add(unfinished->get(), 3).ok());
  EXPECT_THAT(Recover(), IsEmpty());

  tier_.Kill();
  EXPECT_TRUE(absl::IsUnavailable((*unfinished)->Finish()));
  EXPECT_EQ(tier_.GetStats().health, Health::kServing);
  EXPECT_EQ(tier_.GetStats().bytes_used, 2 * kRecordBytes);
  const DiskPlace third = Put(4);
  EXPECT_GT(third.file, second.file);
  std::vector<bool> dead;
  ASSERT_TRUE(tier_
                  .Recover([&](node::DiskTier::RecoveredFile file) {
                    EXPECT_EQ(file.bytes, kRecordBytes);
                    EXPECT_THAT(file.scopes, ElementsAre(scope_));
                    dead.push_back(file.entries.at(0).dead);
                    return true;
                  })
                  .ok());
  EXPECT_THAT(dead, ElementsAre(false, true));
  EXPECT_THAT(tier_.ReadLedger()->fences, ElementsAre(fence));
  EXPECT_EQ(Read(first, 1), absl::StatusCode::kOk);
}

TEST_F(MemoryDiskTierTest, RecordIsDeadThoughItsFileWasFinishedLater) {
  auto builder = tier_.StartFile();
  ASSERT_TRUE(builder.ok());
  const DiskPlace place = *Add(builder->get(), 1);
  ASSERT_TRUE(tier_.MarkDead({{place}}).ok());
  ASSERT_TRUE((*builder)->Finish().ok());
  tier_.Kill();
  bool dead = false;
  ASSERT_TRUE(tier_
                  .Recover([&](node::DiskTier::RecoveredFile file) {
                    dead = file.entries.at(0).dead;
                    return true;
                  })
                  .ok());
  EXPECT_TRUE(dead);
}

TEST_F(MemoryDiskTierTest, RecoveryStopsWhenItsVisitorSaysSo) {
  Put(1);
  Put(2);
  tier_.Kill();
  int visited = 0;
  EXPECT_TRUE(tier_.Recover([&](auto) { return ++visited < 1; }).ok());
  EXPECT_EQ(visited, 1);
}

TEST_F(MemoryDiskTierTest, FenceOfANamespaceForgetsItsLabelsAndReplacesTheOneBefore) {
  node::DiskTier::KnownNamespace known{"alice", "chat", SampleNamespace()};
  ASSERT_TRUE(tier_.PutNamespace(known).ok());
  ASSERT_EQ(tier_.ReadLedger()->namespaces.size(), 1u);
  node::DiskTier::Fence fence;
  fence.fingerprint = *FingerprintOf(known.fields);
  for (uint64_t epoch : {1, 2}) {
    fence.epoch = epoch;
    ASSERT_TRUE(tier_.PutFence(fence).ok());
  }
  EXPECT_THAT(tier_.ReadLedger()->namespaces, IsEmpty());
  EXPECT_THAT(tier_.ReadLedger()->fences, ElementsAre(fence));
}

TEST_F(MemoryDiskTierTest, DamagedAndLostFilesAreMissesAndNotRecovered) {
  const DiskPlace record = Put(1), damaged = Put(2), lost = Put(3);
  tier_.Damage(record);
  tier_.DamageFile(damaged.file);
  tier_.LoseFile(lost.file);
  EXPECT_EQ(Read(record, 1), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Read(damaged, 2), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Read(lost, 3), absl::StatusCode::kNotFound);
  tier_.Kill();
  EXPECT_THAT(Recover(), ElementsAre(record.file));
  EXPECT_EQ(tier_.GetStats().damaged_files, 1u);
}

TEST_F(MemoryDiskTierTest, FailsAsOftenAsTheScriptSays) {
  const DiskPlace place = Put(1);
  tier_.Fail(DiskCall::kRead, absl::UnavailableError("Input/output error"), 2);
  EXPECT_EQ(Read(place, 1), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Read(place, 1), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Read(place, 1), absl::StatusCode::kOk);
  EXPECT_EQ(tier_.calls(DiskCall::kRead), 3u);
  EXPECT_EQ(tier_.GetStats().read_errors, 2u);
}

TEST_F(MemoryDiskTierTest, FailingTierRefusesWithoutTouchingTheDiskUntilAProbeGoesThrough) {
  const DiskPlace place = Put(1);
  tier_.Fail(DiskCall::kPutFence, absl::UnavailableError("Input/output error"));
  tier_.Fail(DiskCall::kProbe, absl::UnavailableError("Input/output error"),
             MemoryDiskTier::kUntilHealed);
  EXPECT_TRUE(absl::IsUnavailable(tier_.PutFence({})));
  EXPECT_EQ(tier_.GetStats().health, Health::kFailing);
  EXPECT_EQ(tier_.GetStats().reason, "Input/output error");
  EXPECT_EQ(Read(place, 1), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::IsUnavailable(tier_.DropFile(place.file)));
  EXPECT_EQ(tier_.calls(DiskCall::kRead), 0u);
  EXPECT_FALSE(tier_.Probe().ok());
  tier_.Heal();
  EXPECT_TRUE(tier_.Probe().ok());
  EXPECT_EQ(Read(place, 1), absl::StatusCode::kOk);
}

TEST_F(MemoryDiskTierTest, HookRunsBeforeEachCallUnderNoLock) {
  const DiskPlace place = Put(1);
  // The file goes while its read is under way.
  tier_.SetHook([&](DiskCall call) {
    if (call != DiskCall::kRead) return;
    EXPECT_TRUE(tier_.DropFile(place.file).ok());
  });
  EXPECT_EQ(Read(place, 1), absl::StatusCode::kNotFound);
}

TEST_F(MemoryDiskTierTest, FileKilledWhileItFinishesIsNotThere) {
  auto builder = tier_.StartFile();
  ASSERT_TRUE(builder.ok() && Add(builder->get(), 1).ok());
  tier_.SetHook([&](DiskCall call) {
    if (call == DiskCall::kFinish) tier_.Kill();
  });
  EXPECT_TRUE(absl::IsUnavailable((*builder)->Finish()));
  EXPECT_THAT(tier_.files(), IsEmpty());
  EXPECT_EQ(tier_.GetStats().bytes_used, 0u);
  EXPECT_EQ(tier_.GetStats().health, Health::kServing);
}

}  // namespace
}  // namespace cairn::testing
