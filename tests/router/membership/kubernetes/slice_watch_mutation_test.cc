// Answers of an API server with bytes changed, taken out, doubled or cut off at random, in pieces
// of any size: whatever is made of them keeps to the bounds, messages can be printed, and the next
// clean list is the truth again.
#include <arpa/inet.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "router/membership/kubernetes/slice_watch.h"
#include "tests/router/membership/kubernetes/slices.h"

namespace cairn::router {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

constexpr uint32_t kSeeds = 4000;

class SliceWatchMutationTest : public ::testing::Test {
 protected:
  uint32_t Pick(size_t below) { return static_cast<uint32_t>(dice_() % below); }

  static std::string Page(const std::string& version, const std::string& more) {
    return json{{"kind", "EndpointSliceList"},
                {"metadata", {{"resourceVersion", version}, {"continue", more}}},
                {"items",
                 {SliceJson("a", {{"10.0.0.1", "u1"}}),
                  SliceJson("b", {{"fd00::2", "u2", false}}, "IPv6")}}}
        .dump();
  }
  static std::string Event(const std::string& type, const std::string& version) {
    json slice = SliceJson("c", {{"10.0.0.3", "u3", true, true}});
    slice["metadata"]["resourceVersion"] = version;
    return json{{"type", type}, {"object", slice}}.dump() + "\n";
  }
  std::string Mutated(std::string text) {
    for (uint32_t i = Pick(4); i > 0 && !text.empty(); --i) {
      const size_t at = Pick(text.size());
      switch (Pick(4)) {
        case 0:
          text[at] = static_cast<char>(Pick(256));
          break;
        case 1:
          text.erase(at, 1 + Pick(20));
          break;
        case 2:
          text.insert(at, text.substr(Pick(text.size()), 1 + Pick(20)));
          break;
        default:
          text.resize(at);
      }
    }
    return text;
  }
  void Give(int code, const std::string& body) {
    watch_.OnStatus(code);
    absl::Status taken;
    for (size_t at = 0; at < body.size() && taken.ok();) {
      const size_t size = std::min<size_t>(1 + Pick(200), body.size() - at);
      taken = watch_.OnBytes(absl::string_view(body).substr(at, size));
      at += size;
    }
    const absl::Status ended =
        watch_.OnEnd(Pick(4) == 0 ? absl::UnavailableError("hung up") : absl::OkStatus());
    EXPECT_TRUE(std::all_of(ended.message().begin(), ended.message().end(), [](char c) {
      return 0x20 <= c && c < 0x7f;
    })) << ended;
    if (const auto members = watch_.TakeChange(); members.has_value()) Check(*members);
  }
  static void Check(const MemberList& members) {
    for (const Member& member : members) {
      in6_addr ignored{};
      const size_t colon = member.address.rfind(':');
      std::string host = member.address.substr(0, colon);
      const bool is_ipv6 = host.front() == '[';
      if (is_ipv6) host = host.substr(1, host.size() - 2);
      EXPECT_EQ(inet_pton(is_ipv6 ? AF_INET6 : AF_INET, host.c_str(), &ignored), 1) << host;
    }
  }

  std::mt19937 dice_;
  SliceWatch watch_{{.name_space = "prod", .service = "cairn", .port_name = "grpc"}};
};

TEST_F(SliceWatchMutationTest, WhateverCameTheNextCleanListIsTheTruth) {
  constexpr int kCodes[] = {200, 200, 200, 200, 410, 500};
  int watched = 0;
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    dice_.seed(seed);
    for (uint32_t answers = 1 + Pick(4); answers > 0; --answers) {
      const bool is_watch = watch_.Next().is_watch;
      watched += is_watch ? 1 : 0;
      const std::string good = is_watch ? Event("ADDED", "11") + Event("DELETED", "12")
                                        : Page("10", Pick(3) == 0 ? "more" : "");
      Give(kCodes[Pick(std::size(kCodes))], Mutated(good));
    }
    if (watch_.Next().is_watch) {
      watch_.OnStatus(410);
      EXPECT_TRUE(absl::IsAborted(watch_.OnEnd(absl::OkStatus())));
    }
    // Of a list that had begun this is the next page, so once more from its start.
    watch_.OnStatus(410);
    EXPECT_TRUE(absl::IsAborted(watch_.OnEnd(absl::OkStatus())));
    watch_.OnStatus(200);
    EXPECT_TRUE(watch_.OnBytes(Page("20", "")).ok());
    EXPECT_TRUE(watch_.OnEnd(absl::OkStatus()).ok());
    static_cast<void>(watch_.TakeChange());
    EXPECT_TRUE(watch_.Next().is_watch);
    // Told anew only when it differs: an event that takes one away shows all that is left.
    watch_.OnStatus(200);
    EXPECT_TRUE(watch_.OnBytes(Event("ADDED", "21")).ok());
    EXPECT_TRUE(watch_.OnEnd(absl::OkStatus()).ok());
    const auto members = watch_.TakeChange();
    ASSERT_TRUE(members.has_value());
    EXPECT_THAT(*members, ElementsAre(Member{"10.0.0.1:7070", "u1", MemberState::kServing},
                                      Member{"10.0.0.3:7070", "u3", MemberState::kLeaving},
                                      Member{"[fd00::2]:7070", "u2", MemberState::kNotReady}));
  }
  EXPECT_GT(watched, 100) << "hardly any answer was a watch's";
}

}  // namespace
}  // namespace cairn::router
