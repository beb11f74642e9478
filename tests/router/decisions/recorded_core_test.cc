// A whole RouterCore under one seed, whose nodes come, go, drain, fall silent and change their
// workers while thousands of prompts are routed under all policies, with and without wishes: what
// was recorded of it is what the callers were told, and replaying it gives every answer again, bit
// for bit. Then the same from several threads at once.
#include <gmock/gmock.h>

#include <map>
#include <random>
#include <sstream>
#include <thread>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "router/decisions/decision_reader.h"
#include "router/decisions/decision_recorder.h"
#include "router/decisions/decision_replay.h"
#include "router/policy/policy_registry.h"
#include "tests/router/core/router_fixture.h"
#include "tests/router/decisions/memory_storage.h"

namespace cairn::router {
namespace {

constexpr int kSteps = 9'000;

class RecordedCoreTest : public RouterFixture {
 protected:
  void SetUp() override {
    RouterFixture::SetUp();
    options_.replicas_per_answer_max = 2;
    options_.remote_tokens_per_second = 30'000;
    DecisionRecorderOptions recording;
    recording.policy = std::string(kDefaultRoutePolicy);
    recorder_ = std::make_unique<DecisionRecorder>(
        recording, std::make_unique<MemoryStorage>(&disk_), &clock_);
    ASSERT_TRUE(recorder_->Open().ok());
    auto core = RouterCore::Make(options_, std::make_unique<PrefixCostPolicy>(PrefixCostOptions{}),
                                 &clock_, &random_, recorder_.get());
    ASSERT_TRUE(core.ok()) << core.status();
    core_ = *std::move(core);
    for (HolderIndex holder = 0; holder < 3; ++holder) {
      Connect(holder);
      streaming_[holder] = true;
    }
    ASSERT_TRUE(core_->Ready());
  }

  uint32_t Pick(uint32_t below) { return static_cast<uint32_t>(dice_() % below); }

  // The next run at that address, under any of a few ids and beside any of a few workers.
  void Appear(HolderIndex holder) {
    core_->OnFeedBroken(holder);
    nodes_[holder] = ModelHolder({.node_id = absl::StrCat("node-", Pick(4)),
                                  .address = absl::StrCat("10.0.0.", holder, ":7000"),
                                  .worker_address = absl::StrCat("w-", Pick(4)),
                                  .incarnation = static_cast<char>('a' + Pick(20)),
                                  .shards = 1 + Pick(5)});
    nodes_[holder].NewStream();
    Say(holder, {nodes_[holder].Hello(), ModelHolder::Namespace(kModel, kBlockTokens)});
    Say(holder, nodes_[holder].Snapshots());
  }
  void Say(HolderIndex holder, const std::vector<Message>& messages) {
    for (const Message& message : messages) {
      streaming_[holder] = core_->OnFeed(holder, message).ok();
      if (!streaming_[holder]) return core_->OnFeedBroken(holder);
    }
  }

  void Step() {
    const auto holder = static_cast<HolderIndex>(Pick(3));
    switch (Pick(40)) {
      case 0:
        return Appear(holder);
      case 1:
        streaming_[holder] = false;
        return core_->OnFeedBroken(holder);
      case 2:
        return Pass(absl::Milliseconds(100 * Pick(15)), {});
      case 3:
        if (streaming_[holder]) {
          Say(holder, {nodes_[holder].Heartbeat(Pick(3) == 0 ? v1::DRAIN_STATE_DRAINING
                                                             : v1::DRAIN_STATE_SERVING)});
        }
        return;
      case 4:
      case 5:
      case 6:
      case 7:
        if (streaming_[holder]) {
          Say(holder,
              nodes_[holder].Set(NumberedKeys(Pick(40), 1 + Pick(8)),
                                 Pick(4) == 0 ? uint8_t{0} : static_cast<uint8_t>(1 + Pick(7)),
                                 kModel, "acme"));
        }
        return;
      default:
        return Request();
    }
  }

  void Request() {
    const auto keys = NumberedKeys(Pick(40), Pick(24));
    const std::string session = Pick(3) == 0 ? absl::StrCat("session-", Pick(6)) : "";
    const std::string excluded = absl::StrCat("w-", Pick(4));
    const absl::string_view exclusions[] = {excluded};
    RouteQuery query = {.caller = "caller",
                        .tenant = "acme",
                        .fingerprint = Pick(20) == 0 ? NumberedFingerprint(9) : kModel,
                        .keys = keys,
                        .request_id = ""};
    query.prompt_tokens = keys.size() * kBlockTokens + Pick(kBlockTokens) + 1;
    query.output_tokens = Pick(500);
    query.session = session;
    const PreferredLabel preferred[] = {{{"zone", "a"}, 0.3}};
    if (Pick(4) == 0) query.preferred_labels = preferred;
    if (Pick(4) == 0) query.excluded_workers = exclusions;
    if (Pick(4) == 0) query.deadline = absl::Milliseconds(1 + Pick(2000));
    if (Pick(2) == 0) {
      const auto names = RoutePolicyNames();
      query.policy = *policies_.Find(names[Pick(static_cast<uint32_t>(names.size()))]);
    }
    const absl::StatusOr<RouteAnswer> answer = core_->Route(query);
    if (!answer.ok()) return;
    answers_[answer->booking] = *answer;
    if (Pick(4) == 0) return;  // Never reported on.
    const std::string worker = Pick(5) == 0 ? absl::StrCat("w-", Pick(6)) : "";
    const auto phase = Pick(3) == 0 ? OutcomePhase::kFirstToken : OutcomePhase::kEnd;
    reports_ += Report(*answer, phase, Pick(2) * kBlockTokens, worker) ? 1 : 0;
  }

  // Held against what its caller was told.
  void ExpectIsWhatWasSaid(const Decision& decision) {
    const auto found = answers_.find(decision.booking);
    ASSERT_NE(found, answers_.end());
    const RouteAnswer& answer = found->second;
    ASSERT_EQ(decision.ranked.size(), answer.replicas.size());
    EXPECT_EQ(decision.policy, answer.policy);
    EXPECT_EQ(decision.degraded, answer.degraded);
    for (size_t place = 0; place < answer.replicas.size(); ++place) {
      const RankedReplica& said = answer.replicas[place];
      const RankedChoice& choice = decision.ranked[place];
      const ReplicaView& view = decision.snapshot.replicas[choice.replica];
      const auto name = std::find_if(
          decision.names->begin(), decision.names->end(),
          [&](const ReplicaName& one) { return one.id == decision.replicas[choice.replica]; });
      ASSERT_NE(name, decision.names->end());
      EXPECT_EQ(name->worker_address, said.worker_address);
      EXPECT_EQ(name->node_id, said.node_id);
      EXPECT_EQ(choice.score, said.score);
      EXPECT_EQ(choice.reason, said.reason);
      EXPECT_EQ(view.own_tokens, said.matched.fed);
      EXPECT_EQ(view.coming_tokens, said.matched.coming);
    }
  }

  MemoryDisk disk_;
  std::unique_ptr<DecisionRecorder> recorder_;
  const RoutePolicySet policies_{PrefixCostOptions{}};
  std::mt19937 dice_{7};
  bool streaming_[3] = {false, false, false};
  absl::flat_hash_map<BookingId, RouteAnswer> answers_;
  uint64_t reports_ = 0;
};

TEST_F(RecordedCoreTest, EveryAnswerIsGivenAgainBitForBit) {
  for (int step = 0; step < kSteps; ++step) {
    Step();
    if (step % 100 == 0) recorder_->Flush();
  }
  recorder_->Flush();
  ASSERT_GT(answers_.size(), 5000u);
  EXPECT_EQ(recorder_->counters().decisions_recorded, answers_.size());
  EXPECT_EQ(recorder_->counters().outcomes_recorded, reports_);
  EXPECT_EQ(recorder_->counters().dropped, 0u);

  std::istringstream in(disk_.files.at(0));
  absl::StatusOr<DecisionReader> reader = DecisionReader::Open(&in);
  ASSERT_TRUE(reader.ok()) << reader.status();
  absl::StatusOr<DecisionReplay> replay =
      DecisionReplay::Make({.policy_options = reader->run().options,
                            .differences_max = 3,
                            .differences_in_any_bit = true});
  ASSERT_TRUE(replay.ok()) << replay.status();
  std::map<RouteReason, int> reasons;
  std::map<std::string, int> by_policy;
  std::map<size_t, int> replicas;
  while (const auto record = reader->Next()) {
    if (const auto* outcome = std::get_if<DecisionOutcome>(&*record)) replay->Add(*outcome);
    const auto* decision = std::get_if<Decision>(&*record);
    if (decision == nullptr) continue;
    ASSERT_TRUE(replay->Add(*decision));
    ASSERT_NO_FATAL_FAILURE(ExpectIsWhatWasSaid(*decision));
    ++reasons[decision->ranked.front().reason];
    ++by_policy[decision->policy];
    ++replicas[decision->snapshot.replicas.size()];
  }
  EXPECT_EQ(reader->damage(), "");
  const DecisionReplay::OfPolicy& own = replay->policies().at(0);
  EXPECT_EQ(own.tally.decisions(), answers_.size());
  EXPECT_EQ(own.same_answer, answers_.size());
  EXPECT_EQ(own.same_choice, answers_.size());
  EXPECT_TRUE(replay->differences().empty());
  EXPECT_GT(replay->outcomes().measured, 1000u);
  EXPECT_GT(replay->outcomes().moved, 50u);
  // What was replayed is of every kind.
  EXPECT_EQ(reasons.size(), 5u);
  EXPECT_EQ(by_policy.size(), RoutePolicyNames().size());
  EXPECT_GE(replicas.size(), 3u);
}

TEST_F(RecordedCoreTest, ARetryIsNoSecondDecision) {
  ASSERT_TRUE(TryRoute(0, 4, "same id 16 bytes").ok());
  ASSERT_TRUE(TryRoute(0, 4, "same id 16 bytes").ok());
  ASSERT_FALSE(TryRoute(0, 5, "same id 16 bytes").ok());
  recorder_->Flush();
  EXPECT_EQ(recorder_->counters().decisions_recorded, 1u);
}

TEST_F(RecordedCoreTest, ReportsThatWereOnlyCountedAreNotRecorded) {
  const RouteAnswer answer = Route(0, 4);
  EXPECT_TRUE(Report(answer, OutcomePhase::kEnd));
  EXPECT_FALSE(Report(answer, OutcomePhase::kEnd)) << "it is over";
  recorder_->Flush();
  EXPECT_EQ(recorder_->counters().outcomes_recorded, 1u);
}

TEST_F(RecordedCoreTest, NothingOfTheCallerIsInTheFile) {
  const auto keys = NumberedKeys(5000, 6);
  ASSERT_TRUE(core_
                  ->Route({.caller = "caller-secret",
                           .tenant = "tenant-secret",
                           .fingerprint = kModel,
                           .keys = keys,
                           .request_id = "id-secret",
                           .session = "session-secret"})
                  .ok());
  recorder_->Flush();
  ASSERT_EQ(recorder_->counters().decisions_recorded, 1u);
  EXPECT_EQ(disk_.files.at(0).find("secret"), std::string::npos);
  for (const BlockKey& key : keys) {
    EXPECT_EQ(disk_.files.at(0).find(std::string(key.view())), std::string::npos);
  }
}

TEST_F(RecordedCoreTest, CallsFromManyThreadsAreRecordedWhileTheyRun) {
  constexpr uint32_t kThreads = 4;
  constexpr uint32_t kEach = 250;
  std::vector<std::thread> threads;
  std::atomic<bool> done = false;
  std::thread flusher([&] {
    while (!done) recorder_->Flush();
  });
  std::thread feeder([&] {
    while (!done) {
      EXPECT_TRUE(core_->OnFeed(0, nodes_[0].Heartbeat()).ok());
      core_->Tick();
    }
  });
  for (uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([this, thread] {
      for (uint32_t i = 0; i < kEach; ++i) Report(Route(thread, 1 + i % 20), OutcomePhase::kEnd);
    });
  }
  for (std::thread& thread : threads) thread.join();
  done = true;
  flusher.join();
  feeder.join();
  recorder_->Flush();
  EXPECT_EQ(recorder_->counters().decisions_recorded, kThreads * kEach);
  EXPECT_EQ(recorder_->counters().outcomes_recorded, kThreads * kEach);
  std::istringstream in(disk_.files.at(0));
  absl::StatusOr<DecisionReader> reader = DecisionReader::Open(&in);
  ASSERT_TRUE(reader.ok()) << reader.status();
  absl::StatusOr<DecisionReplay> replay = DecisionReplay::Make({});
  ASSERT_TRUE(replay.ok());
  while (const auto record = reader->Next()) {
    if (const auto* decision = std::get_if<Decision>(&*record)) replay->Add(*decision);
  }
  EXPECT_EQ(replay->policies().at(0).same_answer, kThreads * kEach);
}

}  // namespace
}  // namespace cairn::router
