// The test is the transport: it looks at what is asked next and gives the answer, whole, in bytes,
// or broken off.
#include "router/membership/kubernetes/slice_watch.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "tests/router/membership/kubernetes/slices.h"

namespace cairn::router {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class SliceWatchTest : public ::testing::Test {
 protected:
  static json Page(const std::vector<json>& items, const std::string& version,
                   const std::string& more = "") {
    return {{"kind", "EndpointSliceList"},
            {"metadata", {{"resourceVersion", version}, {"continue", more}}},
            {"items", items}};
  }
  static std::string Event(const std::string& type, json object, const std::string& version) {
    object["metadata"]["resourceVersion"] = version;
    return json{{"type", type}, {"object", object}}.dump() + "\n";
  }
  static std::string Bookmark(const std::string& version) {
    return Event("BOOKMARK", {{"kind", "EndpointSlice"}}, version);
  }
  static std::string Error(int code) {
    return json{{"type", "ERROR"},
                {"object", {{"kind", "Status"}, {"code", code}, {"message", "too old"}}}}
               .dump() +
           "\n";
  }
  absl::Status Answer(int code, absl::string_view body,
                      const absl::Status& transport = absl::OkStatus()) {
    watch_->OnStatus(code);
    const absl::Status taken = watch_->OnBytes(body);
    return watch_->OnEnd(taken.ok() ? transport : absl::UnavailableError("cut by the reader"));
  }
  std::vector<std::string> Taken() {
    std::vector<std::string> addresses;
    const auto members = watch_->TakeChange();
    if (!members.has_value()) return {"nothing new"};
    for (const Member& member : *members) addresses.push_back(member.address);
    return addresses;
  }
  void SetUp() override { Renew(); }
  void Renew() {
    watch_ = std::make_unique<SliceWatch>(
        SliceWatch::Options{.name_space = "prod", .service = "cairn", .port_name = "grpc"});
  }
  // Lists one slice with one pod at version 10.
  void Start() {
    ASSERT_TRUE(Answer(200, Page({SliceJson("a", {{"10.0.0.1", "u1"}})}, "10").dump()).ok());
    ASSERT_THAT(Taken(), ElementsAre("10.0.0.1:7070"));
  }

  std::unique_ptr<SliceWatch> watch_;
};

TEST_F(SliceWatchTest, AsksForTheServicesSlicesAndThenWatchesFromThere) {
  EXPECT_EQ(watch_->Next().path,
            "/apis/discovery.k8s.io/v1/namespaces/prod/endpointslices?labelSelector="
            "kubernetes.io%2Fservice-name%3Dcairn&limit=20");
  EXPECT_FALSE(watch_->Next().is_watch);
  Start();
  EXPECT_TRUE(watch_->Next().is_watch);
  EXPECT_THAT(watch_->Next().path, AllOf(HasSubstr("watch=1"), HasSubstr("resourceVersion=10&"),
                                         HasSubstr("allowWatchBookmarks=true"),
                                         HasSubstr("timeoutSeconds=120"), Not(HasSubstr("limit"))));
}

TEST_F(SliceWatchTest, AListOfSeveralPagesCountsWhenItIsWhole) {
  ASSERT_TRUE(Answer(200, Page({SliceJson("a", {{"10.0.0.1"}})}, "10", "next/1=").dump()).ok());
  EXPECT_THAT(Taken(), ElementsAre("nothing new"));
  EXPECT_THAT(watch_->Next().path, HasSubstr("&limit=20&continue=next%2F1%3D"));
  ASSERT_TRUE(Answer(200, Page({SliceJson("b", {{"10.0.0.2"}})}, "10").dump()).ok());
  EXPECT_THAT(Taken(), ElementsAre("10.0.0.1:7070", "10.0.0.2:7070"));
}

TEST_F(SliceWatchTest, APageThatExpiredBeginsTheListAnewAndKeepsWhatWasKnown) {
  Start();
  ASSERT_FALSE(Answer(200, Error(410)).ok());
  ASSERT_TRUE(Answer(200, Page({SliceJson("b", {{"10.0.0.2"}})}, "20", "more").dump()).ok());
  EXPECT_TRUE(absl::IsAborted(Answer(410, R"({"kind":"Status","message":"expired"})")));
  EXPECT_THAT(watch_->Next().path, Not(HasSubstr("continue")));
  EXPECT_THAT(Taken(), ElementsAre("nothing new"));
  ASSERT_TRUE(Answer(200, Page({SliceJson("c", {{"10.0.0.3"}})}, "30").dump()).ok());
  EXPECT_THAT(Taken(), ElementsAre("10.0.0.3:7070")) << "pages of two lists were mixed";
}

TEST_F(SliceWatchTest, APageThatBrokeOffIsAskedForAgain) {
  ASSERT_TRUE(Answer(200, Page({SliceJson("a", {{"10.0.0.1"}})}, "10", "more").dump()).ok());
  const std::string half = Page({SliceJson("b", {{"10.0.0.2"}})}, "10").dump().substr(0, 50);
  EXPECT_FALSE(Answer(200, half, absl::UnavailableError("hung up")).ok());
  EXPECT_THAT(watch_->Next().path, HasSubstr("continue=more"));
  ASSERT_TRUE(Answer(200, Page({SliceJson("b", {{"10.0.0.2"}})}, "10").dump()).ok());
  EXPECT_THAT(Taken(), SizeIs(2));
}

TEST_F(SliceWatchTest, AListWithoutEndIsGivenUpAndBegunAnew) {
  const std::string page = Page({}, "10", "more").dump();
  for (int i = 1; i < SliceWatch::kPagesMax; ++i) ASSERT_TRUE(Answer(200, page).ok()) << i;
  EXPECT_TRUE(absl::IsResourceExhausted(Answer(200, page)));
  EXPECT_THAT(watch_->Next().path, Not(HasSubstr("continue")));
  Start();
}

TEST_F(SliceWatchTest, NamesThatTheServerChoseGoIntoMessagesAsTextOfABoundedLength) {
  json wrong = SliceJson("a\nb\x1b" + std::string(1000, 'x'), {});
  wrong.erase("addressType");
  const absl::Status status = Answer(200, Page({wrong}, "1").dump());
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("a?b?x"), Not(HasSubstr("\n"))));
  EXPECT_LT(status.message().size(), 400u);
}

TEST_F(SliceWatchTest, EventsInBytesOfAnySizeChangeTheList) {
  Start();
  const std::string events =
      Event("ADDED", SliceJson("b", {{"10.0.0.2", "u2"}}), "11") + Bookmark("15") +
      Event("MODIFIED", SliceJson("a", {{"10.0.0.1", "u1"}, {"10.0.0.3", "u3"}}), "16") +
      Event("DELETED", SliceJson("b", {{"10.0.0.2", "u2"}}), "17");
  watch_->OnStatus(200);
  std::vector<size_t> sizes;
  for (const char c : events) {
    ASSERT_TRUE(watch_->OnBytes({&c, 1}).ok());
    if (const auto members = watch_->TakeChange(); members.has_value()) {
      sizes.push_back(members->size());
    }
  }
  EXPECT_TRUE(watch_->OnEnd(absl::OkStatus()).ok());
  EXPECT_THAT(sizes, ElementsAre(2, 3, 2));
  EXPECT_THAT(watch_->Next().path, HasSubstr("resourceVersion=17&"));
}

TEST_F(SliceWatchTest, AWatchThatIsCutInTheMiddleOfAnEventGoesOnFromTheLastWholeOne) {
  Start();
  const std::string whole = Event("ADDED", SliceJson("b", {{"10.0.0.2"}}), "11");
  const std::string cut = Event("ADDED", SliceJson("c", {{"10.0.0.3"}}), "12").substr(0, 80);
  EXPECT_FALSE(Answer(200, whole + cut, absl::UnavailableError("hung up")).ok());
  EXPECT_THAT(watch_->Next().path, HasSubstr("watch=1"));
  EXPECT_THAT(watch_->Next().path, HasSubstr("resourceVersion=11&"));
  EXPECT_THAT(Taken(), SizeIs(2));
  ASSERT_TRUE(Answer(200, Event("ADDED", SliceJson("c", {{"10.0.0.3"}}), "12")).ok())
      << "half an event was left over";
  EXPECT_THAT(Taken(), SizeIs(3));
}

TEST_F(SliceWatchTest, AForgottenVersionIsListedAnewAndWhatWentMeanwhileIsGone) {
  for (const bool as_event : {true, false}) {
    SCOPED_TRACE(as_event);
    Renew();
    Start();
    const absl::Status gone = as_event ? Answer(200, Error(410)) : Answer(410, "gone");
    EXPECT_TRUE(absl::IsAborted(gone)) << gone;
    EXPECT_FALSE(watch_->Next().is_watch);
    EXPECT_THAT(Taken(), ElementsAre("nothing new"));
    ASSERT_TRUE(Answer(200, Page({SliceJson("b", {{"10.0.0.9"}})}, "99").dump()).ok());
    EXPECT_THAT(Taken(), ElementsAre("10.0.0.9:7070"));
  }
}

TEST_F(SliceWatchTest, ABookmarkMovesTheVersionThatIsWatchedFrom) {
  Start();
  ASSERT_TRUE(Answer(200, Bookmark("500")).ok());
  EXPECT_THAT(watch_->Next().path, HasSubstr("resourceVersion=500&"));
  EXPECT_THAT(Taken(), ElementsAre("nothing new"));
}

TEST_F(SliceWatchTest, WhatMakesNoSenseIsListedAnew) {
  for (const std::string& bad :
       {std::string("{\n"), std::string("7\n"), std::string("{\"type\":\"ADDED\"}\n"),
        std::string(R"({"type":"ADDED","object":{"kind":"Pod"}})") + "\n",
        Event("PATCHED", SliceJson("b", {}), "12"),
        std::string(SliceWatch::kEventBytesMax - 1, '[') + "\n",
        "{\"type\":\"ERROR\",\"object\":{\"code\":410,\"a\":" + std::string(100'000, '[') +
            std::string(100'000, ']') + "}}\n",
        std::string(SliceWatch::kEventBytesMax + 1, 'x')}) {
    SCOPED_TRACE(bad.substr(0, 60));
    Renew();
    Start();
    EXPECT_FALSE(Answer(200, bad).ok());
    EXPECT_FALSE(watch_->Next().is_watch);
  }
  for (const std::string& bad :
       {std::string("not JSON \xff"), std::string("{}"),
        json{{"metadata", {{"resourceVersion", "1"}}}, {"items", 7}}.dump(),
        Page({json{{"kind", "Pod"}}}, "1").dump()}) {
    SCOPED_TRACE(bad);
    const absl::Status said = Answer(200, bad);
    EXPECT_TRUE(absl::IsInvalidArgument(said)) << said;
    EXPECT_THAT(std::string(said.message()), Not(HasSubstr("\xff")));
  }
}

TEST_F(SliceWatchTest, ABodyWithoutEndIsCutAtTheBound) {
  watch_->OnStatus(200);
  const std::string piece(1 << 20, ' ');
  size_t pieces = 0;
  while (watch_->OnBytes(piece).ok()) ASSERT_LT(++pieces, size_t{100});
  EXPECT_EQ(pieces, SliceWatch::kPageBytesMax >> 20);
  EXPECT_FALSE(watch_->OnEnd(absl::OkStatus()).ok());
  watch_->OnStatus(503);
  for (size_t i = 0; i < 100; ++i) EXPECT_TRUE(watch_->OnBytes(piece).ok());
  EXPECT_TRUE(absl::IsUnavailable(watch_->OnEnd(absl::OkStatus())));
}

TEST_F(SliceWatchTest, ARefusalSaysWhyAndKeepsWhatIsKnown) {
  Start();
  const std::string body =
      R"({"kind":"Status","message":"endpointslices is forbidden: User \"x\" cannot list"})";
  const absl::Status forbidden = Answer(403, body);
  EXPECT_TRUE(absl::IsPermissionDenied(forbidden));
  EXPECT_THAT(forbidden.message(), AllOf(HasSubstr("403"), HasSubstr("cannot list")));
  EXPECT_TRUE(absl::IsPermissionDenied(Answer(401, "Unauthorized")));
  EXPECT_TRUE(watch_->Next().is_watch) << "the version is still good";
  EXPECT_THAT(Taken(), ElementsAre("nothing new"));
}

TEST_F(SliceWatchTest, WatchesThatKeepFailingAreListedAnew) {
  Start();
  for (int i = 1; i < SliceWatch::kFailedWatchesMax; ++i) {
    EXPECT_FALSE(Answer(500, "no").ok());
    EXPECT_TRUE(watch_->Next().is_watch) << i;
  }
  EXPECT_FALSE(Answer(500, "no").ok());
  EXPECT_FALSE(watch_->Next().is_watch);
}

TEST_F(SliceWatchTest, AnEmptyServiceIsAListToo) {
  ASSERT_TRUE(Answer(200, Page({}, "1").dump()).ok());
  const auto members = watch_->TakeChange();
  ASSERT_TRUE(members.has_value());
  EXPECT_THAT(*members, IsEmpty());
  json no_items = Page({}, "2");
  no_items["items"] = nullptr;
  Renew();
  EXPECT_TRUE(Answer(200, no_items.dump()).ok());
}

}  // namespace
}  // namespace cairn::router
