// Slices in, nodes out: conditions, ports, families, and pods that stand in several places at once.
#include "router/membership/kubernetes/slice_set.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "tests/router/membership/kubernetes/slices.h"

namespace cairn::router {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SliceSetTest : public ::testing::Test {
 protected:
  void Put(const json& slice, absl::string_view port_name = "grpc") {
    absl::StatusOr<EndpointSlice> read = ParseEndpointSlice(slice, port_name);
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_TRUE(set_.Put(*std::move(read)).ok());
  }
  SliceSet set_;
};

TEST_F(SliceSetTest, ConditionsSayWhoGetsSomethingNew) {
  Put(SliceJson("a", {{"10.0.0.1", "u1"},
                      {"10.0.0.2", "u2", false},
                      {"10.0.0.3", "u3", true, true},
                      {"10.0.0.4", "u4", std::nullopt, std::nullopt}}));
  EXPECT_THAT(set_.Members(), ElementsAre(Member{"10.0.0.1:7070", "u1", MemberState::kServing},
                                          Member{"10.0.0.2:7070", "u2", MemberState::kNotReady},
                                          Member{"10.0.0.3:7070", "u3", MemberState::kLeaving},
                                          Member{"10.0.0.4:7070", "u4", MemberState::kServing}));
}

TEST_F(SliceSetTest, APodThatTerminatesAndPassesItsProbeStillLeaves) {
  json slice = SliceJson("a", {{"10.0.0.1", "u1", true, true}});
  slice["endpoints"][0]["conditions"] = {{"ready", true}, {"serving", true}, {"terminating", true}};
  Put(slice);
  EXPECT_THAT(set_.Members(), ElementsAre(Member{"10.0.0.1:7070", "u1", MemberState::kLeaving}));
}

TEST_F(SliceSetTest, ThePortIsFoundByItsNameOrIsTheOnlyOne) {
  Put(SliceJson("a", {{"10.0.0.1"}}), "metrics");
  EXPECT_EQ(set_.Members()[0].address, "10.0.0.1:9090");
  Put(SliceJson("a", {{"10.0.0.1"}}), "http");
  EXPECT_THAT(set_.Members(), IsEmpty()) << "no port of that name";
  Put(SliceJson("a", {{"10.0.0.1"}}), "");
  EXPECT_THAT(set_.Members(), IsEmpty()) << "two ports, and none was named";
  json one = SliceJson("a", {{"10.0.0.1"}});
  one["ports"] = {{{"port", 7}}};
  Put(one, "");
  EXPECT_EQ(set_.Members()[0].address, "10.0.0.1:7");
  for (const json& port : {json(nullptr), json(0), json(70'000), json("7070")}) {
    one["ports"] = {{{"name", "grpc"}, {"port", port}}};
    Put(one);
    EXPECT_THAT(set_.Members(), IsEmpty()) << port;
  }
  one["ports"] = {{{"name", "grpc"}, {"port", 7070}, {"protocol", "UDP"}}};
  Put(one);
  EXPECT_THAT(set_.Members(), IsEmpty());
}

TEST_F(SliceSetTest, APodOfTwoFamiliesIsOneNode) {
  Put(SliceJson("a-v6", {{"fd00::1", "u1"}, {"fd00::2", "u2"}}, "IPv6"));
  EXPECT_EQ(set_.Members()[0].address, "[fd00::1]:7070");
  Put(SliceJson("b-v4", {{"10.0.0.1", "u1"}}));
  EXPECT_THAT(set_.Members(), ElementsAre(Member{"10.0.0.1:7070", "u1", MemberState::kServing},
                                          Member{"[fd00::2]:7070", "u2", MemberState::kServing}));
}

TEST_F(SliceSetTest, WhileSlicesAreRewrittenAPodInTwoOfThemIsOneNode) {
  Put(SliceJson("a", {{"10.0.0.1", "u1", false}, {"10.0.0.2", "u2"}}));
  Put(SliceJson("b", {{"10.0.0.1", "u1"}, {"10.0.0.2", "u2", true, true}}));
  EXPECT_THAT(set_.Members(), ElementsAre(Member{"10.0.0.1:7070", "u1", MemberState::kServing},
                                          Member{"10.0.0.2:7070", "u2", MemberState::kLeaving}));
}

TEST_F(SliceSetTest, AnAddressThatAnotherPodAlreadyHasIsTheNewPods) {
  Put(SliceJson("a", {{"10.0.0.1", "old", true, true}}));
  Put(SliceJson("b", {{"10.0.0.1", "new", false}}));
  EXPECT_THAT(set_.Members(), ElementsAre(Member{"10.0.0.1:7070", "new", MemberState::kNotReady}));
  set_.Erase("b");
  EXPECT_THAT(set_.Members(), ElementsAre(Member{"10.0.0.1:7070", "old", MemberState::kLeaving}));
}

TEST_F(SliceSetTest, WhatStandsThereWithoutAPodIsItsAddress) {
  Put(SliceJson("a", {{"10.0.0.1"}}));
  Put(SliceJson("b", {{"10.0.0.1"}, {"10.0.0.2"}}));
  EXPECT_THAT(set_.Members(), SizeIs(2));
}

TEST_F(SliceSetTest, SlicesOfNamesAndEmptyOnesHaveNoNodes) {
  Put(SliceJson("a", {{"db.example"}}, "FQDN"));
  json empty = SliceJson("b", {});
  empty["endpoints"] = nullptr;
  empty["ports"] = nullptr;
  Put(empty);
  EXPECT_THAT(set_.Members(), IsEmpty());
}

TEST_F(SliceSetTest, WhatIsNoSliceIsRefusedAndWhatIsNoEndpointLeftOut) {
  for (const json& bad :
       {json(), json("slice"), json::array(), json{{"kind", "Pod"}},
        json{{"kind", "EndpointSlice"}, {"metadata", {{"name", 7}}}},
        json{{"kind", "Pod"}, {"metadata", {{"name", "a"}}}, {"addressType", "IPv4"}}}) {
    EXPECT_EQ(ParseEndpointSlice(bad, "").status().code(), absl::StatusCode::kInvalidArgument)
        << bad;
  }
  json slice = SliceJson("a", {{"10.0.0.1"}});
  for (const json& bad : {json(7), json{{"addresses", nullptr}}, json{{"addresses", json::array()}},
                          json{{"addresses", {7}}}, json{{"addresses", {std::string(300, 'a')}}},
                          json{{"addresses", {"fd00::1"}}}, json{{"addresses", {"10.0.0.2:80"}}},
                          json{{"addresses", {"evil.example"}}}}) {
    slice["endpoints"].push_back(bad);
  }
  Put(slice);
  EXPECT_THAT(set_.Members(), SizeIs(1));
}

TEST_F(SliceSetTest, BoundsAreRefusedAndSaid) {
  std::vector<TestEndpoint> many(kSliceEndpointsMax + 1, {"10.0.0.1"});
  EXPECT_THAT(ParseEndpointSlice(SliceJson("big", many), "").status().message(),
              HasSubstr("1001 endpoints"));
  for (size_t i = 0; i < SliceSet::kSlicesMax; ++i) Put(SliceJson(absl::StrCat("s", i), {}));
  EndpointSlice one_more;
  one_more.name = "one-more";
  EXPECT_EQ(set_.Put(one_more).code(), absl::StatusCode::kResourceExhausted);
  one_more.name = "s1";
  EXPECT_TRUE(set_.Put(one_more).ok());
}

}  // namespace
}  // namespace cairn::router
