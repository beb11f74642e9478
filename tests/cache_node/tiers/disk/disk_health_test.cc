// The rules by which a disk tier is taken out and in again, as tables of what its calls met.
#include "cache_node/tiers/disk/disk_health.h"

#include <gmock/gmock.h>

namespace cairn::node {
namespace {

using Health = DiskTier::Health;
using ::testing::HasSubstr;

const absl::Status kEio = absl::UnavailableError("Input/output error");
const absl::Status kNoRoom = absl::ResourceExhaustedError("No space left on device");

TEST(DiskHealthTest, ServesAtFirst) {
  DiskHealth health;
  EXPECT_EQ(health.health(), Health::kServing);
  EXPECT_TRUE(health.AdmitRead().ok());
  EXPECT_TRUE(health.AdmitWrite().ok());
  EXPECT_EQ(health.reason(), "");
}

TEST(DiskHealthTest, FullDiskRefusesWritesOnlyAndSaysWhy) {
  DiskHealth health;
  health.NoteWrite(kNoRoom);
  EXPECT_EQ(health.health(), Health::kFull);
  EXPECT_TRUE(health.AdmitRead().ok());
  EXPECT_TRUE(absl::IsResourceExhausted(health.AdmitWrite()));
  EXPECT_THAT(std::string(health.AdmitWrite().message()), HasSubstr("No space left"));
  health.NoteRoom();
  EXPECT_TRUE(health.AdmitWrite().ok());
}

TEST(DiskHealthTest, OneFailedWriteTakesTheTierOut) {
  DiskHealth health;
  health.NoteWrite(kEio);
  EXPECT_TRUE(absl::IsUnavailable(health.AdmitRead()));
  EXPECT_TRUE(absl::IsUnavailable(health.AdmitWrite()));
  EXPECT_EQ(health.reason(), "Input/output error");
}

TEST(DiskHealthTest, ReadsTakeItOutWhenSeveralFailInARow) {
  DiskHealth health;
  for (uint32_t i = 1; i < DiskHealth::kReadErrorsInARowMax; ++i) health.NoteRead(kEio);
  EXPECT_TRUE(health.AdmitRead().ok());
  health.NoteRead(absl::OkStatus());
  for (uint32_t i = 1; i < DiskHealth::kReadErrorsInARowMax; ++i) health.NoteRead(kEio);
  EXPECT_TRUE(health.AdmitRead().ok());
  health.NoteRead(kEio);
  EXPECT_TRUE(absl::IsUnavailable(health.AdmitRead()));
}

TEST(DiskHealthTest, ErrorsOfOneRecordSayNothingOfTheDisk) {
  DiskHealth health;
  for (int i = 0; i < 100; ++i) {
    health.NoteRead(absl::DataLossError("checksum"));
    health.NoteRead(absl::NotFoundError("gone"));
  }
  EXPECT_EQ(health.health(), Health::kServing);
}

TEST(DiskHealthTest, FailingIsWorseThanFullAndKeepsItsFirstReason) {
  DiskHealth health;
  health.NoteWrite(kNoRoom);
  health.NoteWrite(kEio);
  health.NoteWrite(absl::UnavailableError("another"));
  health.NoteWrite(kNoRoom);
  health.NoteRoom();
  EXPECT_EQ(health.health(), Health::kFailing);
  EXPECT_EQ(health.reason(), "Input/output error");
}

TEST(DiskHealthTest, AProbeTakesItInAgainAndCountsAnew) {
  DiskHealth health;
  health.NoteWrite(kEio);
  health.Readmit();
  EXPECT_EQ(health.health(), Health::kServing);
  EXPECT_EQ(health.reason(), "");
  health.NoteRead(kEio);
  EXPECT_TRUE(health.AdmitRead().ok());
}

}  // namespace
}  // namespace cairn::node
