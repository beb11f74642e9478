// The recorder over a disk of strings, flushed by hand on a fake clock: what is written and in
// which order, what a full queue, a full file and a full disk do, and many threads at once.
#include "router/decisions/decision_recorder.h"

#include <gmock/gmock.h>

#include <sstream>
#include <thread>

#include "router/decisions/decision_reader.h"
#include "tests/router/decisions/memory_storage.h"
#include "tests/router/decisions/sample_decisions.h"
#include "tests/testing/fake_clock.h"

namespace cairn::router {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Counters = DecisionRecorder::Counters;

class DecisionRecorderTest : public ::testing::Test {
 protected:
  void Make() {
    options_.policy = "preble";
    recorder_ = std::make_unique<DecisionRecorder>(
        options_, std::make_unique<MemoryStorage>(&disk_), &clock_,
        [this](absl::string_view line) { lines_.emplace_back(line); });
  }
  void Open() {
    Make();
    const absl::Status status = recorder_->Open();
    ASSERT_TRUE(status.ok()) << status;
  }
  void Decide(uint32_t number) { recorder_->OnDecision(NumberedDecision(number, names_)); }

  // The sequences of its decisions.
  static std::vector<uint64_t> SequencesIn(const std::string& file) {
    std::vector<uint64_t> sequences;
    for (const DecisionReader::Record& record : RecordsIn(file)) {
      if (const auto* decision = std::get_if<Decision>(&record)) {
        sequences.push_back(decision->snapshot.sequence);
      }
    }
    return sequences;
  }
  static std::vector<DecisionReader::Record> RecordsIn(const std::string& file) {
    std::istringstream in(file);
    absl::StatusOr<DecisionReader> reader = DecisionReader::Open(&in);
    EXPECT_TRUE(reader.ok()) << reader.status();
    std::vector<DecisionReader::Record> records;
    if (!reader.ok()) return records;
    while (auto record = reader->Next()) records.push_back(*std::move(record));
    EXPECT_EQ(reader->records_unknown(), 0u);
    return records;
  }

  MemoryDisk disk_;
  testing::FakeClock clock_;
  DecisionRecorderOptions options_;
  std::vector<std::string> lines_;
  std::shared_ptr<const ReplicaNames> names_ = NumberedNames(4);
  std::unique_ptr<DecisionRecorder> recorder_;
};

TEST_F(DecisionRecorderTest, WritesWhatItIsGivenInOrderWithTheTime) {
  options_.policy_options.miss_weight = 12;
  ASSERT_NO_FATAL_FAILURE(Open());
  Decide(1);
  clock_.Advance(absl::Milliseconds(1500));
  recorder_->OnOutcome({.booking = NumberedBooking(1), .cached_tokens = 64});
  EXPECT_EQ(recorder_->counters().decisions_recorded, 0u) << "nothing is written before Flush";
  recorder_->Flush();
  const Counters counters = recorder_->counters();
  EXPECT_EQ(counters.decisions_recorded, 1u);
  EXPECT_EQ(counters.outcomes_recorded, 1u);
  EXPECT_EQ(counters.dropped, 0u);
  EXPECT_EQ(counters.bytes, disk_.files[0].size());

  std::istringstream in(disk_.files[0]);
  absl::StatusOr<DecisionReader> reader = DecisionReader::Open(&in);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(reader->run().policy, "preble");
  EXPECT_EQ(reader->run().options.miss_weight, 12);
  EXPECT_EQ(reader->run().share, 1);
  const auto first = reader->Next();
  ASSERT_TRUE(first.has_value());
  const Decision decision = std::get<Decision>(*first);
  const Decision given = NumberedDecision(1, names_);
  EXPECT_EQ(decision.time, absl::FromUnixSeconds(1'800'000'000));
  EXPECT_TRUE(decision.snapshot == given.snapshot);
  EXPECT_TRUE(decision.ranked == given.ranked);
  EXPECT_EQ(decision.replicas, given.replicas);
  EXPECT_EQ(*decision.names, *names_);
  const auto second = reader->Next();
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(std::get<DecisionOutcome>(*second).cached_tokens, 64u);
  EXPECT_EQ(std::get<DecisionOutcome>(*second).time - decision.time, absl::Milliseconds(1500));
  EXPECT_FALSE(reader->Next().has_value());
  EXPECT_EQ(reader->damage(), "");
}

TEST_F(DecisionRecorderTest, NamesAreWrittenOnceAndAgainWhenTheyChange) {
  ASSERT_NO_FATAL_FAILURE(Open());
  Decide(1);
  recorder_->Flush();
  const size_t with_names = disk_.files[0].size();
  Decide(1);
  recorder_->Flush();
  const size_t again = disk_.files[0].size() - with_names;
  const std::shared_ptr<const ReplicaNames> old = names_;
  names_ = NumberedNames(5);
  Decide(1);
  Decide(1);
  recorder_->Flush();
  EXPECT_GT(disk_.files[0].size() - with_names, 3 * again) << "no second table";
  std::vector<ReplicaNames> seen;
  for (const auto& record : RecordsIn(disk_.files[0])) {
    seen.push_back(*std::get<Decision>(record).names);
  }
  EXPECT_THAT(seen, ElementsAre(*old, *old, *names_, *names_));
}

TEST_F(DecisionRecorderTest, AFullQueueDropsAndTheFileSaysHowMany) {
  options_.queue_bytes_max = 8192;
  ASSERT_NO_FATAL_FAILURE(Open());
  constexpr uint32_t kGiven = 50;
  for (uint32_t number = 0; number < kGiven; ++number) Decide(number);
  const uint64_t dropped = recorder_->counters().dropped;
  EXPECT_GT(dropped, 10u);
  EXPECT_LT(dropped, kGiven);
  recorder_->Flush();
  EXPECT_EQ(recorder_->counters().dropped, dropped);
  EXPECT_EQ(recorder_->counters().decisions_recorded, kGiven - dropped);
  const auto records = RecordsIn(disk_.files[0]);
  ASSERT_EQ(records.size(), kGiven - dropped + 1);
  EXPECT_EQ(std::get<LostDecisions>(records.back()).records, dropped);
  // There is room again.
  Decide(kGiven);
  recorder_->Flush();
  EXPECT_EQ(recorder_->counters().dropped, dropped);
  EXPECT_EQ(SequencesIn(disk_.files[0]).back(), kGiven);
}

TEST_F(DecisionRecorderTest, TwoFilesHoldTheLatestAndNeverMoreThanTheBound) {
  options_.bytes_max = 64 << 10;
  ASSERT_NO_FATAL_FAILURE(Open());
  constexpr uint32_t kGiven = 500;
  for (uint32_t number = 0; number < kGiven; ++number) {
    Decide(number);
    recorder_->Flush();
    EXPECT_LE(disk_.BytesKept(), options_.bytes_max);
  }
  ASSERT_GT(disk_.files.size(), 3u);
  EXPECT_GT(disk_.BytesKept(), options_.bytes_max / 2);
  // Each can be read alone, and together they have everything once.
  std::vector<uint64_t> all;
  for (const std::string& file : disk_.files) {
    for (const uint64_t sequence : SequencesIn(file)) all.push_back(sequence);
  }
  ASSERT_EQ(all.size(), kGiven);
  for (uint32_t number = 0; number < kGiven; ++number) EXPECT_EQ(all[number], number);
  EXPECT_EQ(recorder_->counters().dropped, 0u);
}

TEST_F(DecisionRecorderTest, ARecordThatNoFileHasRoomForIsDropped) {
  options_.bytes_max = 64 << 10;
  ASSERT_NO_FATAL_FAILURE(Open());
  Decision large = NumberedDecision(1, names_);
  for (int i = 0; i < 2000; ++i) {
    large.snapshot.replicas.push_back(FullView(1));
    large.replicas.push_back(9);
  }
  recorder_->OnDecision(std::move(large));
  Decide(2);
  recorder_->Flush();
  EXPECT_EQ(recorder_->counters().dropped, 1u);
  EXPECT_TRUE(recorder_->recording());
  EXPECT_THAT(SequencesIn(disk_.files[0]), ElementsAre(2));
}

TEST_F(DecisionRecorderTest, AFullDiskEndsTheRecordingWithOneLineAndNothingElse) {
  disk_.bytes_left = 20'000;
  ASSERT_NO_FATAL_FAILURE(Open());
  uint32_t number = 0;
  while (recorder_->Wants(NumberedBooking(number))) {
    ASSERT_LT(number, 1000u);
    Decide(number++);
    recorder_->Flush();
  }
  EXPECT_FALSE(recorder_->recording());
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_THAT(lines_[0], HasSubstr("decisions are not recorded any more: disk full"));
  const Counters counters = recorder_->counters();
  EXPECT_EQ(counters.decisions_recorded + counters.dropped, number);
  // The last is cut; those before it are used.
  EXPECT_EQ(SequencesIn(disk_.files[0]).size(), counters.decisions_recorded);
  // A router that asked before it stopped.
  disk_.bytes_left = 1 << 20;
  Decide(number);
  recorder_->Flush();
  recorder_->Flush();
  EXPECT_EQ(lines_.size(), 1u);
  EXPECT_EQ(disk_.files.size(), 1u);
  EXPECT_EQ(SequencesIn(disk_.files[0]).size(), counters.decisions_recorded);
}

TEST_F(DecisionRecorderTest, ADiskThatIsFullFromTheStartIsSaidByOpen) {
  disk_.bytes_left = 5;
  Make();
  EXPECT_THAT(recorder_->Open().message(), HasSubstr("disk full"));
  EXPECT_FALSE(recorder_->Wants(NumberedBooking(1)));
}

TEST_F(DecisionRecorderTest, AShareIsOfBookingsAndTheSameForDecisionAndOutcome) {
  options_.share = 0.25;
  ASSERT_NO_FATAL_FAILURE(Open());
  constexpr uint32_t kBookings = 20'000;
  uint32_t wanted = 0;
  for (uint32_t number = 0; number < kBookings; ++number) {
    BookingId booking;
    uint64_t place = number * uint64_t{0x9e37'79b9'7f4a'7c15};
    for (uint8_t& byte : booking.bytes) byte = static_cast<uint8_t>(place = place * 3 >> 1);
    wanted += recorder_->Wants(booking) ? 1 : 0;
    EXPECT_EQ(recorder_->Wants(booking), recorder_->Wants(booking));
  }
  EXPECT_GT(wanted, kBookings / 8);
  EXPECT_LT(wanted, kBookings / 2);
}

TEST_F(DecisionRecorderTest, ManyThreadsDecideWhileOneFlushes) {
  ASSERT_NO_FATAL_FAILURE(Open());
  constexpr uint32_t kThreads = 4;
  constexpr uint32_t kEach = 300;
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([this, thread] {
      for (uint32_t i = 0; i < kEach; ++i) {
        const uint32_t number = thread * kEach + i;
        Decide(number);
        recorder_->OnOutcome({.booking = NumberedBooking(number)});
        recorder_->counters();
      }
    });
  }
  std::thread flusher([this] {
    while (recorder_->counters().decisions_recorded < kThreads * kEach) recorder_->Flush();
  });
  for (std::thread& thread : threads) thread.join();
  flusher.join();
  recorder_->Flush();
  EXPECT_EQ(recorder_->counters().outcomes_recorded, kThreads * kEach);
  std::vector<uint64_t> sequences = SequencesIn(disk_.files[0]);
  std::sort(sequences.begin(), sequences.end());
  ASSERT_EQ(sequences.size(), kThreads * kEach);
  for (uint32_t number = 0; number < kThreads * kEach; ++number) {
    EXPECT_EQ(sequences[number], number);
  }
}

}  // namespace
}  // namespace cairn::router
