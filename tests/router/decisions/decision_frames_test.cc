// A small file, cut after every byte, with every bit changed, with frames swapped, doubled and left
// out: what is read is always a clean beginning of what was written, and the rest is called damage.
#include "router/decisions/decision_frames.h"

#include <gmock/gmock.h>

#include <sstream>

namespace cairn::router {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Of different lengths, and one that is empty.
const std::vector<std::string> kPayloads = {"first", "", "the third, which is longer", "4"};

std::string FileOf(const std::vector<std::string>& payloads) {
  std::string file = DecisionHead();
  for (const std::string& payload : payloads) AppendDecisionFrame(payload, file.size(), &file);
  return file;
}

struct ReadBack {
  absl::Status head;
  std::vector<std::string> payloads;
  std::string damage;
  uint64_t offset = 0;
};

ReadBack Read(const std::string& file) {
  std::istringstream in(file);
  DecisionFrames frames(&in);
  ReadBack result;
  result.head = frames.ReadHead();
  if (!result.head.ok()) return result;
  while (const auto payload = frames.Next()) result.payloads.emplace_back(*payload);
  result.damage = frames.damage();
  result.offset = frames.offset();
  EXPECT_FALSE(frames.Next().has_value()) << "goes on after its end";
  return result;
}

bool IsBeginningOfAll(const std::vector<std::string>& payloads) {
  return payloads.size() <= kPayloads.size() &&
         std::equal(payloads.begin(), payloads.end(), kPayloads.begin());
}

TEST(DecisionFramesTest, WhatWasWrittenIsRead) {
  const ReadBack read = Read(FileOf(kPayloads));
  ASSERT_TRUE(read.head.ok()) << read.head;
  EXPECT_EQ(read.payloads, kPayloads);
  EXPECT_EQ(read.damage, "");
  EXPECT_EQ(read.offset, FileOf(kPayloads).size());
}

TEST(DecisionFramesTest, AFileCutAnywhereGivesItsWholeFramesAndSaysThatItWasCut) {
  const std::string file = FileOf(kPayloads);
  for (size_t size = 0; size < file.size(); ++size) {
    const ReadBack read = Read(file.substr(0, size));
    if (size < kDecisionHeadBytes) {
      EXPECT_TRUE(absl::IsInvalidArgument(read.head)) << size;
      continue;
    }
    ASSERT_TRUE(read.head.ok()) << size;
    EXPECT_TRUE(IsBeginningOfAll(read.payloads)) << size;
    EXPECT_LE(read.offset, size);
    // Between frames a cut file is a shorter one.
    EXPECT_EQ(read.damage.empty(), read.offset == size) << size;
    EXPECT_EQ(FileOf({kPayloads.begin(),
                      kPayloads.begin() + static_cast<std::ptrdiff_t>(read.payloads.size())})
                  .size(),
              read.offset);
  }
}

TEST(DecisionFramesTest, AChangedBitAnywhereEndsWhatIsUsedBeforeIt) {
  const std::string file = FileOf(kPayloads);
  for (size_t bit = 0; bit < 8 * file.size(); ++bit) {
    std::string changed = file;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ 1 << bit % 8);
    const ReadBack read = Read(changed);
    if (bit / 8 < kDecisionHeadBytes) {
      EXPECT_TRUE(absl::IsInvalidArgument(read.head)) << bit;
      continue;
    }
    EXPECT_TRUE(IsBeginningOfAll(read.payloads)) << bit;
    EXPECT_LE(read.offset, bit / 8);
    EXPECT_NE(read.damage, "") << bit;
  }
}

TEST(DecisionFramesTest, SoundFramesInTheWrongPlaceAreDamage) {
  const std::string head = DecisionHead();
  const std::string file = FileOf({"one", "two"});
  const size_t frame = (file.size() - head.size()) / 2;
  const std::string first = file.substr(head.size(), frame);
  const std::string second = file.substr(head.size() + frame);
  EXPECT_THAT(Read(head + second + first).payloads, ElementsAre());
  EXPECT_THAT(Read(head + second).payloads, ElementsAre());
  EXPECT_THAT(Read(head + first + first).payloads, ElementsAre("one"));
  EXPECT_THAT(Read(head + first + second).payloads, ElementsAre("one", "two"));
}

TEST(DecisionFramesTest, ALengthThatNoFrameHasIsDamageAndAllocatesNothing) {
  std::string file = DecisionHead();
  file += "\xff\xff\xff\xff and no such bytes";
  EXPECT_THAT(Read(file).damage, HasSubstr("4294967295 bytes"));
}

TEST(DecisionFramesTest, ForeignFilesAndLaterVersionsAreSaidToBe) {
  EXPECT_THAT(Read("").head.message(), HasSubstr("no file of decisions"));
  EXPECT_THAT(Read("{\"json\": true}").head.message(), HasSubstr("no file of decisions"));
  std::string later = FileOf(kPayloads);
  later[kDecisionMagic.size()] = 2;
  EXPECT_THAT(Read(later).head.message(), HasSubstr("version 2; this program reads 1 to 1"));
  later[kDecisionMagic.size()] = 0;
  EXPECT_THAT(Read(later).head.message(), HasSubstr("version 0"));
}

}  // namespace
}  // namespace cairn::router
