// Serves a Metrics on a free port of loopback and asks for it over a plain socket.
#include "common/server/metrics_server.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The whole answer to a GET, empty if nobody accepts.
std::string Get(int port, const std::string& path) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  name.sin_port = htons(static_cast<uint16_t>(port));
  std::string answer;
  if (connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)) == 0) {
    const std::string request = absl::StrCat("GET ", path, " HTTP/1.0\r\n\r\n");
    EXPECT_EQ(send(fd, request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    char buffer[4096];
    for (ssize_t size; (size = recv(fd, buffer, sizeof(buffer), 0)) > 0;) {
      answer.append(buffer, static_cast<size_t>(size));
    }
  }
  close(fd);
  return answer;
}

TEST(MetricsServerTest, ServesCountersAndCallbacks) {
  Metrics metrics;
  metrics.AddCounter("cairn_hits_total", "Tokens found.").Increment(3);
  const CallbackMetric used = metrics.AddCallback(CallbackKind::kGauge, "cairn_used_bytes",
                                                  "Bytes in use.", [] { return 5; });
  const auto server = MetricsServer::Start(metrics, "127.0.0.1:0");
  ASSERT_TRUE(server.ok()) << server.status();
  ASSERT_GT((*server)->port(), 0);
  EXPECT_THAT(Get((*server)->port(), "/metrics"),
              AllOf(HasSubstr("200 OK"), HasSubstr("cairn_hits_total 3\n"),
                    HasSubstr("cairn_used_bytes 5\n")));
  EXPECT_THAT(Get((*server)->port(), "/other"), HasSubstr("404"));
}

TEST(MetricsServerTest, ATakenPortIsNamed) {
  Metrics metrics;
  const auto first = MetricsServer::Start(metrics, "127.0.0.1:0");
  ASSERT_TRUE(first.ok()) << first.status();
  const std::string address = absl::StrCat("127.0.0.1:", (*first)->port());
  const auto second = MetricsServer::Start(metrics, address);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(address));
}

TEST(MetricsServerTest, ThePortIsFreeWhenItGoes) {
  Metrics metrics;
  int port = 0;
  {
    const auto server = MetricsServer::Start(metrics, "127.0.0.1:0");
    ASSERT_TRUE(server.ok()) << server.status();
    port = (*server)->port();
  }
  EXPECT_THAT(Get(port, "/metrics"), IsEmpty());
  EXPECT_TRUE(MetricsServer::Start(metrics, absl::StrCat("127.0.0.1:", port)).ok());
}

TEST(MetricsServerTest, AnAddressThatIsNoneIsRefused) {
  Metrics metrics;
  for (const char* address : {"nowhere", "unix:/tmp/metrics", "[::1]:0"}) {
    const auto server = MetricsServer::Start(metrics, address);
    EXPECT_EQ(server.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(server.status().message()), HasSubstr(address));
  }
}

}  // namespace
}  // namespace cairn
