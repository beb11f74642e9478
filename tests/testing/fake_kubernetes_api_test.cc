// A client by hand: what goes over the wire is what an API server says.
#include "tests/testing/fake_kubernetes_api.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"

namespace cairn::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kPath[] = "/apis/discovery.k8s.io/v1/namespaces/prod/endpointslices";

// One request on a connection of its own, read as far as the test wants.
class Client {
 public:
  Client(const FakeKubernetesApi& api, const std::string& query, const std::string& token = "")
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const std::vector<std::string> url = absl::StrSplit(api.url(), ':');
    int port = 0;
    CAIRN_CHECK(absl::SimpleAtoi(url.back(), &port));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CAIRN_CHECK(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    const std::string request = absl::StrCat(
        "GET ", kPath, "?", query, " HTTP/1.1\r\nHost: x\r\n",
        token.empty() ? "" : absl::StrCat("Authorization: Bearer ", token, "\r\n"), "\r\n");
    CAIRN_CHECK(send(fd_, request.data(), request.size(), 0) ==
                static_cast<ssize_t>(request.size()));
  }
  ~Client() { close(fd_); }

  // Until `what` has come `times` times; all that came by then, or by the end.
  std::string ReadUntil(absl::string_view what, size_t times = 1) {
    char buffer[4096];
    while (Count(what) < times) {
      const ssize_t got = recv(fd_, buffer, sizeof(buffer), 0);
      if (got <= 0) {
        ended_ = true;
        break;
      }
      text_.append(buffer, static_cast<size_t>(got));
    }
    return text_;
  }
  bool ended() const { return ended_; }

 private:
  size_t Count(absl::string_view what) const {
    return std::vector<absl::string_view>(absl::StrSplit(text_, what)).size() - 1;
  }

  const int fd_;
  std::string text_;
  bool ended_ = false;
};

json Slice(const std::string& name, const std::string& service = "cairn") {
  return {{"metadata", {{"name", name}, {"labels", {{"kubernetes.io/service-name", service}}}}},
          {"addressType", "IPv4"}};
}

std::string Selector(const std::string& service) {
  return absl::StrCat("labelSelector=kubernetes.io%2Fservice-name%3D", service);
}

TEST(FakeKubernetesApiTest, ListsWhatTheSelectorChoosesAtAVersion) {
  FakeKubernetesApi api({});
  api.Put(Slice("a"));
  api.Put(Slice("b", "other"));
  const std::string answer = Client(api, Selector("cairn")).ReadUntil("addressType");
  EXPECT_THAT(answer, AllOf(HasSubstr("200"), HasSubstr("\"a\""), Not(HasSubstr("\"b\"")),
                            HasSubstr(R"("resourceVersion":"102"}})")));
}

TEST(FakeKubernetesApiTest, PagesAreOfOneVersionAndExpire) {
  FakeKubernetesApi api({});
  for (const char* name : {"a", "b", "c"}) api.Put(Slice(name));
  const std::string first = Client(api, "limit=2").ReadUntil("continue");
  EXPECT_THAT(first, AllOf(HasSubstr("\"b\""), Not(HasSubstr("\"c\""))));
  api.Put(Slice("d"));
  const std::string second = Client(api, "limit=2&continue=page%2F1%3D").ReadUntil("metadata", 2);
  EXPECT_THAT(second, AllOf(HasSubstr("\"c\""), HasSubstr("\"103\""), Not(HasSubstr("\"d\""))));
  api.Compact();
  EXPECT_THAT(Client(api, "continue=page%2F1%3D").ReadUntil("expired"), HasSubstr("410"));
}

TEST(FakeKubernetesApiTest, AWatchGetsWhatCameAfterItsVersionAndWhatComes) {
  FakeKubernetesApi api({});
  api.Put(Slice("a"));
  api.Put(Slice("b"));
  Client watch(api, "watch=1&resourceVersion=101&allowWatchBookmarks=true");
  EXPECT_THAT(watch.ReadUntil("ADDED"), Not(HasSubstr("\"a\"")));
  api.Put(Slice("a"));
  watch.ReadUntil("MODIFIED");
  api.Delete("b");
  watch.ReadUntil("DELETED");
  api.Bookmark();
  EXPECT_THAT(watch.ReadUntil("BOOKMARK"), HasSubstr("\"105\""));
  EXPECT_TRUE(api.AwaitWatched(absl::Seconds(10)));
  api.Compact();
  Client late(api, "watch=1&resourceVersion=101");
  EXPECT_THAT(late.ReadUntil("\r\n0\r\n"), AllOf(HasSubstr("ERROR"), HasSubstr("410")));
  api.SayGoneByStatus();
  EXPECT_THAT(Client(api, "watch=1&resourceVersion=101").ReadUntil("too old"),
              HasSubstr("HTTP/1.1 410"));
  EXPECT_EQ(api.seen().gone, 2);
}

TEST(FakeKubernetesApiTest, AWatchEndsAtItsTime) {
  FakeKubernetesApi api({});
  Client watch(api, "watch=1&resourceVersion=100&timeoutSeconds=1");
  EXPECT_THAT(watch.ReadUntil("\r\n0\r\n"), HasSubstr("200 OK"));
  EXPECT_FALSE(watch.ended()) << "the connection stays";
}

TEST(FakeKubernetesApiTest, FaultsHappenAsTold) {
  FakeKubernetesApi api({.token = "good"});
  EXPECT_THAT(Client(api, "", "bad").ReadUntil("said"), HasSubstr("401"));
  EXPECT_EQ(api.seen().unauthorized, 1);
  api.FailNext(1, 503, "Retry-After: 7\r\n");
  EXPECT_THAT(Client(api, "", "good").ReadUntil("said"),
              AllOf(HasSubstr("503"), HasSubstr("Retry-After: 7")));
  api.Put(Slice("a"));
  Client cut(api, "watch=1&resourceVersion=100", "good");
  cut.ReadUntil("ADDED");
  api.CutNextEvent();
  api.Put(Slice("a"));
  EXPECT_THAT(cut.ReadUntil("never"), Not(HasSubstr("\n\r\n0\r\n")));
  EXPECT_TRUE(cut.ended());
  api.WriteInPieces(1);
  Client slow(api, "watch=1&resourceVersion=100", "good");
  slow.ReadUntil("MODIFIED");
  api.HangUp();
  slow.ReadUntil("never");
  EXPECT_TRUE(slow.ended());
}

}  // namespace
}  // namespace cairn::testing
