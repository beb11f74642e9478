// Parses addresses; probes ports and Unix sockets that this process holds or does not hold.
#include "common/server/listen_address.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "gmock/gmock.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ListenAddress Parsed(absl::string_view text) {
  auto address = ListenAddress::Parse(text);
  CAIRN_CHECK_OK(address.status());
  return *std::move(address);
}

TEST(ListenAddressTest, TakesItsThreeForms) {
  EXPECT_EQ(Parsed("127.0.0.1:7000").ToString(), "127.0.0.1:7000");
  EXPECT_EQ(Parsed("localhost:0").ToString(), "127.0.0.1:0");
  EXPECT_EQ(Parsed("[::1]:65535").ToString(), "[::1]:65535");
  EXPECT_EQ(Parsed("[::1]:1").host(), "::1");
  EXPECT_EQ(Parsed("unix:/run/cairn.sock").ToString(), "unix:/run/cairn.sock");
  EXPECT_EQ(Parsed("127.0.0.1:0").WithPort(5).ToString(), "127.0.0.1:5");
}

TEST(ListenAddressTest, RefusesAnythingElseAndNamesIt) {
  for (const char* text : {"", "7000", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
                           "127.0.0.1:http", "host.example:1", "::1:1", "[127.0.0.1]:1", "[::1:1",
                           ":7000", "unix:", "unix:relative", "1.2.3:4"}) {
    const auto address = ListenAddress::Parse(text);
    ASSERT_EQ(address.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(address.status().message()),
                AllOf(HasSubstr(absl::StrCat("'", text, "'")), HasSubstr("host:port")));
  }
  EXPECT_FALSE(ListenAddress::Parse(absl::StrCat("unix:/", std::string(107, 'x'))).ok());
}

TEST(ListenAddressTest, KnowsWhatOnlyThisMachineReaches) {
  EXPECT_TRUE(Parsed("127.8.9.1:1").IsLoopback());
  EXPECT_TRUE(Parsed("[::1]:1").IsLoopback());
  EXPECT_TRUE(Parsed("unix:/x").IsLoopback());
  EXPECT_FALSE(Parsed("0.0.0.0:1").IsLoopback());
  EXPECT_FALSE(Parsed("[::]:1").IsLoopback());
  EXPECT_FALSE(Parsed("10.127.0.1:1").IsLoopback());
}

TEST(ProbeBindTest, AFreePortIsOkAndATakenOneIsNamed) {
  EXPECT_TRUE(ProbeBind(Parsed("127.0.0.1:0")).ok());
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof(name);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&name), bytes), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&name), &bytes), 0);
  const std::string text = absl::StrCat("127.0.0.1:", ntohs(name.sin_port));
  const absl::Status status = ProbeBind(Parsed(text));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(text), HasSubstr("another process")));
  close(fd);
  EXPECT_TRUE(ProbeBind(Parsed(text)).ok());
}

TEST(ProbeBindTest, AnAddressOfAnotherMachineIsNamed) {
  const absl::Status status = ProbeBind(Parsed("192.0.2.1:0"));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("192.0.2.1:0"), HasSubstr("no interface of this machine")));
}

TEST(ProbeBindTest, AUnixSocketIsTakenWhileSomebodyListens) {
  std::string directory = absl::StrCat(::testing::TempDir(), "/sockXXXXXX");
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  const ListenAddress address = Parsed(absl::StrCat("unix:", directory, "/s"));
  EXPECT_TRUE(ProbeBind(address).ok());
  EXPECT_FALSE(std::filesystem::exists(address.path())) << "a probe leaves nothing";
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, address.path().data(), address.path().size());
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  EXPECT_THAT(std::string(ProbeBind(address).message()), HasSubstr("another process"));
  close(fd);
  EXPECT_TRUE(ProbeBind(address).ok()) << "the socket's file is left over, but nobody serves it";
  std::filesystem::remove_all(directory);
  EXPECT_THAT(std::string(ProbeBind(address).message()), HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace cairn
