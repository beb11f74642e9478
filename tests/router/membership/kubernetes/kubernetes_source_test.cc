// The whole source, with libcurl and a thread of its own, against a fake API server that forgets,
// hangs up, stutters and refuses.
#include "router/membership/kubernetes/kubernetes_source.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "router/membership/kubernetes/curl_transport.h"
#include "tests/router/membership/kubernetes/slices.h"
#include "tests/testing/child_process.h"
#include "tests/testing/fake_kubernetes_api.h"
#include "tests/testing/seeded_random.h"
#include "tests/testing/test_certificates.h"

namespace cairn::router {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::FakeKubernetesApi;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kSoon = absl::Seconds(30);

class KubernetesSourceTest : public ::testing::Test {
 protected:
  KubernetesSourceTest() : folder_(testing::MakeTempFolder()) {
    testing::ReplaceFile(ca_file(), authority_.certificate());
    testing::ReplaceFile(token_file(), "good\n");
    const testing::IssuedCertificate issued =
        authority_.Issue({.common_name = "kubernetes", .uri = ""});
    tls_ = {issued.certificate, issued.key};
  }
  ~KubernetesSourceTest() override {
    Stop();
    std::filesystem::remove_all(folder_);
  }
  std::string ca_file() const { return folder_ + "/ca.crt"; }
  std::string token_file() const { return folder_ + "/token"; }

  void StartApi(bool tls = true) {
    FakeKubernetesApi::Options options;
    if (tls) options.tls = tls_;
    if (tls) options.token = "good";
    api_ = std::make_unique<FakeKubernetesApi>(options);
    api_->Put(SliceJson("a", {{"10.0.0.1", "u1"}}));
  }
  void StartSource() {
    KubernetesSource::Options options;
    options.watch = {.name_space = "prod", .service = "cairn", .port_name = "grpc"};
    options.backoff_initial = absl::Milliseconds(1);
    options.backoff_max = absl::Milliseconds(20);
    source_ = std::make_unique<KubernetesSource>(
        options,
        std::make_unique<CurlTransport>(
            CurlTransport::Options{api_->url(), ca_file(), token_file()}),
        KubernetesSource::Parts{.clock = &clock_, .random = &random_, .log = [this](auto line) {
                                  absl::MutexLock lock(&mutex_);
                                  lines_.emplace_back(line);
                                }});
    thread_ = std::thread([this] {
      source_->Run(stop_, [this](const MemberList& members) {
        absl::MutexLock lock(&mutex_);
        members_ = members;
        ++told_;
      });
    });
  }
  void Start() {
    StartApi();
    StartSource();
    ASSERT_TRUE(AwaitAddresses({"10.0.0.1:7070"}));
    ASSERT_TRUE(api_->AwaitWatched(kSoon));
  }
  void Stop() {
    stop_.Set();
    if (thread_.joinable()) thread_.join();
  }

  bool AwaitAddresses(std::vector<std::string> wanted) {
    std::sort(wanted.begin(), wanted.end());  // As members are.
    absl::MutexLock lock(&mutex_);
    const auto there = [&] {
      mutex_.AssertReaderHeld();
      return Addresses() == wanted;
    };
    if (mutex_.AwaitWithTimeout(absl::Condition(&there), kSoon)) return true;
    ADD_FAILURE() << "last told: " << ::testing::PrintToString(Addresses()) << ", "
                  << source_->status().last;
    return false;
  }
  std::vector<std::string> Addresses() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    std::vector<std::string> addresses;
    for (const Member& member : members_) addresses.push_back(member.address);
    return addresses;
  }
  bool AwaitLine(const std::string& what) {
    absl::MutexLock lock(&mutex_);
    const auto said = [&] {
      mutex_.AssertReaderHeld();
      return std::any_of(lines_.begin(), lines_.end(), [&what](const std::string& line) {
        return absl::StrContains(line, what);
      });
    };
    return mutex_.AwaitWithTimeout(absl::Condition(&said), kSoon);
  }
  bool AwaitSeen(const std::function<bool(const FakeKubernetesApi::Seen&)>& condition) {
    const WakeEvent never;
    for (const absl::Time end = clock_.SteadyNow() + kSoon; clock_.SteadyNow() < end;) {
      if (condition(api_->seen())) return true;
      never.WaitFor(absl::Milliseconds(2));
    }
    return false;
  }
  void PutPod(int number) {
    api_->Put(SliceJson(absl::StrCat("pod", number), {{absl::StrCat("10.0.0.", number)}}));
  }

  const std::string folder_;
  testing::TestAuthority authority_{"cluster"};
  testing::HttpConnection::Tls tls_;
  SystemClock clock_;
  testing::SeededRandom random_{7};
  std::unique_ptr<FakeKubernetesApi> api_;
  std::unique_ptr<KubernetesSource> source_;
  WakeEvent stop_;
  std::thread thread_;
  mutable absl::Mutex mutex_;
  MemberList members_ ABSL_GUARDED_BY(mutex_);
  int told_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(KubernetesSourceTest, ListsAndThenFollowsEveryChange) {
  Start();
  EXPECT_EQ(source_->name(), "kubernetes prod/cairn");
  PutPod(2);
  EXPECT_TRUE(AwaitAddresses({"10.0.0.1:7070", "10.0.0.2:7070"}));
  api_->Put(SliceJson("a", {{"10.0.0.1", "u1", true, true}}));
  api_->Delete("pod2");
  EXPECT_TRUE(AwaitAddresses({"10.0.0.1:7070"}));
  {
    absl::MutexLock lock(&mutex_);
    EXPECT_EQ(members_[0].state, MemberState::kLeaving);
  }
  EXPECT_TRUE(source_->status().last.ok());
  EXPECT_EQ(api_->seen().lists, 1) << "one list and one watch are enough";
  EXPECT_EQ(api_->seen().watches, 1);
}

TEST_F(KubernetesSourceTest, OverPlainHttpNoTokenIsSent) {
  StartApi(/*tls=*/false);
  StartSource();
  EXPECT_TRUE(AwaitAddresses({"10.0.0.1:7070"}));
}

TEST_F(KubernetesSourceTest, AListOfManyPagesIsWhole) {
  StartApi();
  std::vector<std::string> wanted = {"10.0.0.1:7070"};
  for (int i = 100; i < 100 + 3 * SliceWatch::kPageSlices; ++i) {
    PutPod(i);
    wanted.push_back(absl::StrCat("10.0.0.", i, ":7070"));
  }
  StartSource();
  EXPECT_TRUE(AwaitAddresses(wanted));
  EXPECT_EQ(api_->seen().lists, 4);
  absl::MutexLock lock(&mutex_);
  EXPECT_EQ(told_, 1);
}

TEST_F(KubernetesSourceTest, AHangUpAndAnEventCutInItsMiddleLoseNothing) {
  Start();
  std::vector<std::string> wanted = {"10.0.0.1:7070"};
  for (int i = 2; i < 8; ++i) {
    if (i % 2 == 0) api_->CutNextEvent();
    PutPod(i);
    wanted.push_back(absl::StrCat("10.0.0.", i, ":7070"));
    ASSERT_TRUE(AwaitAddresses(wanted));
    if (i % 2 != 0) api_->HangUp();
  }
  EXPECT_EQ(api_->seen().lists, 1) << "the watch goes on from the last whole event";
}

TEST_F(KubernetesSourceTest, BytesThatTrickleAreReadAsTheyCome) {
  StartApi();
  api_->WriteInPieces(1);
  StartSource();
  ASSERT_TRUE(AwaitAddresses({"10.0.0.1:7070"}));
  PutPod(2);
  EXPECT_TRUE(AwaitAddresses({"10.0.0.1:7070", "10.0.0.2:7070"}));
}

TEST_F(KubernetesSourceTest, AForgottenVersionIsListedAnew) {
  for (const bool by_status : {false, true}) {
    SCOPED_TRACE(by_status);
    if (!by_status) Start();
    if (by_status) api_->SayGoneByStatus();
    // Refused until the events that it missed are forgotten too.
    const std::string token = by_status ? "second" : "first";
    api_->SetToken(token);
    api_->HangUp();
    ASSERT_TRUE(AwaitSeen([](const auto& seen) { return seen.unauthorized > 0; }));
    PutPod(by_status ? 3 : 2);
    api_->Compact();
    testing::ReplaceFile(token_file(), token);
    EXPECT_TRUE(AwaitAddresses(
        by_status ? std::vector<std::string>{"10.0.0.1:7070", "10.0.0.2:7070", "10.0.0.3:7070"}
                  : std::vector<std::string>{"10.0.0.1:7070", "10.0.0.2:7070"}));
  }
  EXPECT_GE(api_->seen().gone, 1);
}

TEST_F(KubernetesSourceTest, ABookmarkSparesAListAfterTheOldEventsAreForgotten) {
  Start();
  api_->Bookmark();
  PutPod(2);
  ASSERT_TRUE(AwaitAddresses({"10.0.0.1:7070", "10.0.0.2:7070"}));
  api_->Bookmark();
  api_->Put(SliceJson("other", {{"10.0.9.9"}}, "IPv4", 7070, "somebody-else"));
  api_->Bookmark();
  // The last bookmark is known once what came after it is.
  PutPod(3);
  ASSERT_TRUE(AwaitAddresses({"10.0.0.1:7070", "10.0.0.2:7070", "10.0.0.3:7070"}));
  api_->Compact();
  api_->HangUp();
  ASSERT_TRUE(AwaitSeen([](const auto& seen) { return seen.watches >= 2; }));
  PutPod(4);
  EXPECT_TRUE(AwaitAddresses({"10.0.0.1:7070", "10.0.0.2:7070", "10.0.0.3:7070", "10.0.0.4:7070"}));
  EXPECT_EQ(api_->seen().lists, 1);
  EXPECT_EQ(api_->seen().gone, 0);
}

TEST_F(KubernetesSourceTest, AWrongTokenKeepsTheListAndTheNextOneIsReadFromItsFile) {
  Start();
  api_->SetToken("rotated");
  api_->HangUp();
  ASSERT_TRUE(AwaitSeen([](const auto& seen) { return seen.unauthorized >= 3; }));
  EXPECT_TRUE(absl::IsPermissionDenied(source_->status().last)) << source_->status().last;
  EXPECT_TRUE(AwaitLine("answered 401"));
  EXPECT_TRUE(AwaitAddresses({"10.0.0.1:7070"})) << "what is known stays";
  PutPod(2);
  testing::ReplaceFile(token_file(), "rotated\n");
  EXPECT_TRUE(AwaitAddresses({"10.0.0.1:7070", "10.0.0.2:7070"}));
  EXPECT_TRUE(AwaitLine("answers again"));
  absl::MutexLock lock(&mutex_);
  for (const std::string& line : lines_) EXPECT_FALSE(absl::StrContains(line, "rotated")) << line;
}

TEST_F(KubernetesSourceTest, AServerOfAnotherAuthorityIsToldNothing) {
  testing::TestAuthority stranger("stranger");
  testing::ReplaceFile(ca_file(), stranger.certificate());
  StartApi();
  StartSource();
  EXPECT_TRUE(AwaitLine("certificate"));
  EXPECT_EQ(api_->seen().lists + api_->seen().unauthorized, 0);
  testing::ReplaceFile(ca_file(), authority_.certificate());
  EXPECT_TRUE(AwaitAddresses({"10.0.0.1:7070"})) << "the CA is read anew";
}

TEST_F(KubernetesSourceTest, AnOverloadedServerIsLeftAloneForAsLongAsItSays) {
  StartApi();
  api_->FailNext(1, 429, "Retry-After: 1\r\n");
  const absl::Time began = clock_.SteadyNow();
  StartSource();
  EXPECT_TRUE(AwaitAddresses({"10.0.0.1:7070"}));
  EXPECT_GE(clock_.SteadyNow() - began, absl::Seconds(1));
}

TEST_F(KubernetesSourceTest, AFileThatIsNoTokenIsSaidWithoutItsContent) {
  testing::ReplaceFile(token_file(), "two words");
  StartApi();
  StartSource();
  EXPECT_TRUE(AwaitLine("holds no token"));
  absl::MutexLock lock(&mutex_);
  for (const std::string& line : lines_) EXPECT_FALSE(absl::StrContains(line, "two words"));
}

TEST_F(KubernetesSourceTest, StopEndsAWatchAtOnce) {
  Start();
  const absl::Time began = clock_.SteadyNow();
  Stop();
  EXPECT_LT(clock_.SteadyNow() - began, absl::Seconds(5)) << "the watch lasts 2 minutes";
}

TEST(CurlTransportTest, AddressesThatWouldGiveATokenAwayAreRefused) {
  const auto check = [](const std::string& url, const std::string& ca = "ca") {
    return std::string(CurlTransport::Validate({url, ca, "token"}).message());
  };
  EXPECT_EQ(check("https://10.0.0.1:443"), "");
  EXPECT_EQ(check("https://[fd00::1]:6443/"), "");
  EXPECT_EQ(check("http://127.0.0.1:8001"), "");
  EXPECT_THAT(check("http://10.0.0.1:80"), HasSubstr("use https"));
  EXPECT_THAT(check("10.0.0.1:443"), HasSubstr("https://HOST:PORT"));
  EXPECT_THAT(check("https://10.0.0.1"), HasSubstr("port"));
  EXPECT_THAT(check("https://10.0.0.1:443", ""), HasSubstr("CA"));
}

}  // namespace
}  // namespace cairn::router
