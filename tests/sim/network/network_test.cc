// Two hosts that talk, one stream or a few at a time, under each kind of weather: what arrives, in
// which order, and how each end hears of the end.
#include "tests/sim/network/network.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"

namespace cairn::sim {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr HostId kClient = 1;
constexpr HostId kServer = 2;
constexpr uint32_t kAlways = 10'000;

WeatherOptions Fair() {
  return {.slow_chance = 0,
          .request_lost_chance = 0,
          .answer_lost_chance = 0,
          .stream_broken_chance = 0,
          .feed_lost_chance = 0,
          .feed_repeated_chance = 0,
          .feed_swapped_chance = 0};
}

// Remembers what it hears.
class Ear : public StreamEnd {
 public:
  void OnPacket(StreamId /*stream*/, Packet packet) override { heard.push_back(packet.bytes); }
  void OnPeerDone(StreamId /*stream*/) override { peer_done = true; }
  void OnSent(StreamId /*stream*/) override { ++sent; }
  void OnClosed(StreamId /*stream*/, const absl::Status& status) override {
    ends.push_back(status.code());
  }

  std::vector<std::string> heard;
  bool peer_done = false;
  int sent = 0;
  std::vector<absl::StatusCode> ends;
};

class NetworkTest : public ::testing::Test, public Acceptor {
 protected:
  // With weather that begins now.
  void Begin(const WeatherOptions& options, uint64_t seed = 1) {
    weather_ = std::make_unique<Weather>(options, seed, &scheduler_);
    network_ = std::make_unique<Network>(&scheduler_, weather_.get(), &log_);
    network_->Attach(kClient, "client", nullptr);
    network_->Attach(kServer, "server", this);
  }
  StreamEnd* Accept(StreamId stream, Method /*method*/, const Caller& caller) override {
    accepted_.push_back(stream);
    caller_ = caller;
    return &server_;
  }
  StreamId Open(Method method, absl::Duration timeout = absl::Seconds(10)) {
    return network_->Open(kClient, kServer, method, Caller{.id = "me", .tenant = "acme"}, &client_,
                          timeout);
  }
  void Send(StreamId stream, Network::Side from, const std::string& bytes,
            bool expendable = false) {
    Packet packet;
    packet.bytes = bytes;
    packet.expendable = expendable;
    network_->Send(stream, from, std::move(packet));
  }
  void RunFor(absl::Duration time) {
    bool over = false;
    scheduler_.After(time, kWorldHost, [&over] { over = true; });
    while (!over) scheduler_.Step();
  }

  Scheduler scheduler_;
  EventLog log_{scheduler_.clock()};
  std::unique_ptr<Weather> weather_;
  std::unique_ptr<Network> network_;
  Ear client_;
  Ear server_;
  std::vector<StreamId> accepted_;
  Caller caller_;
};

constexpr Network::Side kFromClient = Network::Side::kClient;
constexpr Network::Side kFromServer = Network::Side::kServer;

TEST_F(NetworkTest, ACallAndItsAnswerArrive) {
  Begin(Fair());
  const StreamId call = Open(Method::kLookup);
  Send(call, kFromClient, "ask");
  EXPECT_THAT(server_.heard, IsEmpty()) << "nothing arrives at once";
  RunFor(absl::Milliseconds(10));
  EXPECT_THAT(server_.heard, ElementsAre("ask"));
  EXPECT_EQ(caller_.tenant, "acme");
  Send(call, kFromServer, "answer");
  network_->Finish(call, absl::OkStatus());
  RunFor(absl::Milliseconds(10));
  EXPECT_THAT(client_.heard, ElementsAre("answer"));
  EXPECT_THAT(client_.ends, ElementsAre(absl::StatusCode::kOk));
  EXPECT_THAT(server_.ends, IsEmpty()) << "who finished a stream hears nothing more of it";
}

TEST_F(NetworkTest, OneStreamKeepsItsOrderAndStreamsOvertakeEachOther) {
  Begin(Fair());
  const StreamId first = Open(Method::kWrite);
  for (int i = 0; i < 20; ++i) Send(first, kFromClient, absl::StrCat("a", i));
  const StreamId second = Open(Method::kWrite);
  for (int i = 0; i < 20; ++i) Send(second, kFromClient, absl::StrCat("b", i));
  RunFor(absl::Seconds(1));
  std::vector<std::string> of_first;
  for (const std::string& one : server_.heard) {
    if (one[0] == 'a') of_first.push_back(one);
  }
  ASSERT_THAT(of_first, SizeIs(20));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(of_first[static_cast<size_t>(i)], absl::StrCat("a", i));
  EXPECT_NE(server_.heard.back(), server_.heard.front());
  EXPECT_FALSE(
      std::is_sorted(server_.heard.begin(), server_.heard.end(),
                     [](const std::string& a, const std::string& b) { return a[0] < b[0]; }));
}

TEST_F(NetworkTest, ASenderWaitsForRoomInTheWindow) {
  Begin(Fair());
  const StreamId stream = Open(Method::kGet);
  RunFor(absl::Milliseconds(10));
  weather_->BlockLink(kServer, kClient, scheduler_.Now() + absl::Seconds(1));
  for (int i = 0; i < 6; ++i) Send(stream, kFromServer, "frame");
  RunFor(absl::Milliseconds(500));
  const int sent = server_.sent;
  EXPECT_LT(sent, 6);
  RunFor(absl::Seconds(1));
  EXPECT_GT(server_.sent, sent);
  EXPECT_THAT(client_.heard, SizeIs(6));
}

TEST_F(NetworkTest, ALateMessageIsLaterThanOthersEverAre) {
  WeatherOptions slow = Fair();
  slow.slow_chance = kAlways;
  slow.slow_most = absl::Seconds(1);
  Begin(slow);
  Send(Open(Method::kLookup), kFromClient, "ask");
  RunFor(slow.delay_most);
  EXPECT_THAT(server_.heard, IsEmpty());
  RunFor(2 * slow.slow_most);
  EXPECT_THAT(server_.heard, SizeIs(1));
}

TEST_F(NetworkTest, ARequestThatIsLostDoesNotArriveAndItsClientHearsThatThePeerIsGone) {
  WeatherOptions lossy = Fair();
  lossy.request_lost_chance = kAlways;
  Begin(lossy);
  Send(Open(Method::kReserve), kFromClient, "ask");
  RunFor(absl::Seconds(20));
  EXPECT_THAT(accepted_, IsEmpty());
  ASSERT_THAT(client_.ends, SizeIs(1));
  EXPECT_NE(client_.ends[0], absl::StatusCode::kOk);
}

// The client may hear that the connection went before its request has arrived, so several seeds.
TEST_F(NetworkTest, AnAnswerThatIsLostWasStillMade) {
  WeatherOptions lossy = Fair();
  lossy.answer_lost_chance = kAlways;
  constexpr size_t kCalls = 20;
  for (uint64_t seed = 1; seed <= kCalls; ++seed) {
    Begin(lossy, seed);
    const StreamId call = Open(Method::kReserve);
    Send(call, kFromClient, "ask");
    RunFor(2 * lossy.delay_most);
    Send(call, kFromServer, "answer");
    network_->Finish(call, absl::OkStatus());
    RunFor(absl::Seconds(20));
  }
  EXPECT_THAT(server_.heard, SizeIs(Gt(kCalls / 4)));
  EXPECT_THAT(server_.heard, Each("ask"));
  EXPECT_THAT(client_.heard, IsEmpty());
  EXPECT_THAT(client_.ends, SizeIs(kCalls));
  EXPECT_THAT(client_.ends, Not(Contains(absl::StatusCode::kOk)));
}

TEST_F(NetworkTest, ACallWithoutAnAnswerEndsByItsDeadlineAndTheServerLearnsOfIt) {
  Begin(Fair());
  Send(Open(Method::kLookup, absl::Milliseconds(100)), kFromClient, "ask");
  RunFor(absl::Milliseconds(200));
  EXPECT_THAT(client_.ends, ElementsAre(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(server_.ends, ElementsAre(absl::StatusCode::kCancelled));
}

TEST_F(NetworkTest, AStreamThatBreaksLosesWhatIsOnItsWayAndBothEndsHear) {
  Begin(Fair());
  const StreamId stream = Open(Method::kGet);
  RunFor(absl::Milliseconds(10));
  Send(stream, kFromServer, "frame");
  network_->Break(stream);
  Send(stream, kFromServer, "another");
  RunFor(absl::Seconds(20));
  EXPECT_THAT(client_.heard, IsEmpty());
  EXPECT_THAT(client_.ends, ElementsAre(absl::StatusCode::kUnavailable));
  EXPECT_THAT(server_.ends, ElementsAre(absl::StatusCode::kCancelled));
}

TEST_F(NetworkTest, PayloadStreamsBreakByTheWeather) {
  WeatherOptions rough = Fair();
  rough.stream_broken_chance = kAlways;
  Begin(rough);
  const StreamId stream = Open(Method::kWrite);
  RunFor(absl::Milliseconds(10));
  Send(stream, kFromClient, "frame");
  RunFor(absl::Seconds(20));
  EXPECT_THAT(server_.heard, IsEmpty());
  EXPECT_THAT(client_.ends, ElementsAre(absl::StatusCode::kUnavailable));
}

TEST_F(NetworkTest, AHostThatIsDetachedIsGoneWithWhatItSent) {
  Begin(Fair());
  const StreamId stream = Open(Method::kGet);
  RunFor(absl::Milliseconds(10));
  Send(stream, kFromServer, "frame");
  network_->Detach(kServer);
  RunFor(absl::Seconds(20));
  EXPECT_THAT(client_.heard, IsEmpty());
  EXPECT_THAT(client_.ends, ElementsAre(absl::StatusCode::kUnavailable));
  EXPECT_THAT(server_.ends, IsEmpty()) << "the dead hear nothing";
  Open(Method::kGet, absl::InfiniteDuration());
  RunFor(absl::Seconds(20));
  EXPECT_THAT(client_.ends, SizeIs(2)) << "nobody listens there";
}

TEST_F(NetworkTest, WhoDropsAStreamHearsNothingMore) {
  Begin(Fair());
  const StreamId stream = Open(Method::kWatchBlocks, absl::InfiniteDuration());
  RunFor(absl::Milliseconds(10));
  Send(stream, kFromServer, "record");
  network_->Drop(stream);
  RunFor(absl::Seconds(1));
  EXPECT_THAT(client_.heard, IsEmpty());
  EXPECT_THAT(client_.ends, IsEmpty());
  EXPECT_THAT(server_.ends, ElementsAre(absl::StatusCode::kCancelled));
}

TEST_F(NetworkTest, ABlockedLinkHoldsMessagesUntilItOpens) {
  Begin(Fair());
  weather_->BlockLink(kClient, kServer, scheduler_.Now() + absl::Seconds(3));
  Send(Open(Method::kLookup), kFromClient, "ask");
  RunFor(absl::Milliseconds(2900));
  EXPECT_THAT(server_.heard, IsEmpty());
  RunFor(absl::Milliseconds(200));
  EXPECT_THAT(server_.heard, ElementsAre("ask"));
}

// What a feed's client hears of two records, the second of which meets the weather.
class FeedWeatherTest : public NetworkTest {
 protected:
  std::vector<std::string> TwoRecordsUnder(const WeatherOptions& options, bool expendable) {
    Begin(options);
    const StreamId feed = Open(Method::kWatchBlocks, absl::InfiniteDuration());
    RunFor(absl::Milliseconds(10));
    Send(feed, kFromServer, "1", expendable);
    Send(feed, kFromServer, "2", expendable);
    EXPECT_EQ(network_->LastFeedFault(feed) > absl::InfinitePast(), expendable);
    RunFor(absl::Milliseconds(10));
    return client_.heard;
  }
};

TEST_F(FeedWeatherTest, RecordsAreLost) {
  WeatherOptions lossy = Fair();
  lossy.feed_lost_chance = kAlways;
  EXPECT_THAT(TwoRecordsUnder(lossy, true), IsEmpty());
}

TEST_F(FeedWeatherTest, RecordsAreRepeated) {
  WeatherOptions repeating = Fair();
  repeating.feed_repeated_chance = kAlways;
  EXPECT_THAT(TwoRecordsUnder(repeating, true), ElementsAre("1", "1", "2", "2"));
}

TEST_F(FeedWeatherTest, RecordsChangePlaces) {
  WeatherOptions swapping = Fair();
  swapping.feed_swapped_chance = kAlways;
  EXPECT_THAT(TwoRecordsUnder(swapping, true), ElementsAre("2", "1"));
}

TEST_F(FeedWeatherTest, WhatCannotBeSpareArrives) {
  WeatherOptions lossy = Fair();
  lossy.feed_lost_chance = kAlways;
  EXPECT_THAT(TwoRecordsUnder(lossy, false), ElementsAre("1", "2"));
}

TEST_F(NetworkTest, CalmWeatherLosesNothing) {
  WeatherOptions lossy;
  lossy.request_lost_chance = lossy.feed_lost_chance = lossy.stream_broken_chance = kAlways;
  Begin(lossy);
  weather_->Calm();
  Send(Open(Method::kLookup), kFromClient, "ask");
  Send(Open(Method::kWrite), kFromClient, "frame");
  RunFor(absl::Milliseconds(10));
  EXPECT_THAT(server_.heard, SizeIs(2));
}

TEST_F(NetworkTest, OneSeedGivesOneHistoryAndAnotherAnother) {
  std::vector<uint64_t> digests;
  for (const uint64_t seed : {1, 1, 2}) {
    Scheduler scheduler;
    EventLog log(scheduler.clock());
    Weather weather(WeatherOptions{}, seed, &scheduler);
    Network network(&scheduler, &weather, &log);
    network.Attach(kClient, "client", nullptr);
    network.Attach(kServer, "server", this);
    for (int i = 0; i < 10; ++i) {
      network.Open(kClient, kServer, Method::kLookup, {}, &client_, absl::Seconds(1));
    }
    while (scheduler.Step()) {
    }
    digests.push_back(log.digest());
  }
  EXPECT_EQ(digests[0], digests[1]);
  EXPECT_NE(digests[0], digests[2]);
}

}  // namespace
}  // namespace cairn::sim
