#include "common/server/listen_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/check.h"

namespace cairn {
namespace {

constexpr char kUnixPrefix[] = "unix:";
constexpr int kPortMax = 65535;

absl::Status Malformed(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is no address to listen on: ", why,
                   "; write host:port with a numeric host or localhost, [v6]:port, or unix:/path"));
}

absl::Status CannotListen(const ListenAddress& address, int error) {
  const char* const hint = error == EADDRINUSE      ? ": another process listens there"
                           : error == EADDRNOTAVAIL ? ": no interface of this machine has it"
                                                    : "";
  return absl::FailedPreconditionError(
      absl::StrCat("cannot listen on ", address.ToString(), ": ", std::strerror(error), hint));
}

absl::Status ProbeUnix(const ListenAddress& address) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  CAIRN_CHECK(address.path().size() < sizeof(name.sun_path));
  std::memcpy(name.sun_path, address.path().data(), address.path().size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return CannotListen(address, errno);
  const auto close_fd = absl::MakeCleanup([fd] { close(fd); });
  const int rc = connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof(name));
  if (rc == 0 || errno == EAGAIN) return CannotListen(address, EADDRINUSE);
  if (errno == ECONNREFUSED) return absl::OkStatus();
  if (errno != ENOENT) return CannotListen(address, errno);
  // Nothing has the name: see whether it may be made.
  if (bind(fd, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) != 0) {
    return CannotListen(address, errno);
  }
  unlink(name.sun_path);
  return absl::OkStatus();
}

absl::Status ProbeTcp(const ListenAddress& address) {
  sockaddr_in6 v6{};
  sockaddr_in v4{};
  const sockaddr* name = nullptr;
  socklen_t name_bytes = 0;
  const in_port_t port = htons(static_cast<uint16_t>(address.port()));
  if (inet_pton(AF_INET, address.host().c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = port;
    name = reinterpret_cast<const sockaddr*>(&v4);
    name_bytes = sizeof(v4);
  } else {
    CAIRN_CHECK(inet_pton(AF_INET6, address.host().c_str(), &v6.sin6_addr) == 1);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = port;
    name = reinterpret_cast<const sockaddr*>(&v6);
    name_bytes = sizeof(v6);
  }
  const int fd = socket(name->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return CannotListen(address, errno);
  const auto close_fd = absl::MakeCleanup([fd] { close(fd); });
  // As the servers do: connections that a predecessor left in TIME_WAIT do not count.
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(fd, name, name_bytes) != 0 || listen(fd, 1) != 0) return CannotListen(address, errno);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ListenAddress> ListenAddress::Parse(absl::string_view text) {
  ListenAddress address;
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, kUnixPrefix)) {
    if (!absl::StartsWith(rest, "/")) return Malformed(text, "a Unix socket needs a whole path");
    if (rest.size() >= sizeof(sockaddr_un::sun_path)) {
      return Malformed(text, absl::StrCat("the path has ", rest.size(), " bytes, ",
                                          sizeof(sockaddr_un::sun_path) - 1, " fit"));
    }
    address.path_ = std::string(rest);
    return address;
  }
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return Malformed(text, "there is no port");
  if (!absl::SimpleAtoi(text.substr(colon + 1), &address.port_) || address.port_ < 0 ||
      address.port_ > kPortMax) {
    return Malformed(text, "the port is not a number from 0 to 65535");
  }
  absl::string_view host = text.substr(0, colon);
  const bool brackets = absl::ConsumePrefix(&host, "[") && absl::ConsumeSuffix(&host, "]");
  address.host_ = host == "localhost" ? "127.0.0.1" : std::string(host);
  in6_addr parsed;
  if (inet_pton(brackets ? AF_INET6 : AF_INET, address.host_.c_str(), &parsed) != 1) {
    return Malformed(text, "the host is not numeric");
  }
  return address;
}

bool ListenAddress::IsLoopback() const {
  return is_unix() || host_ == "::1" || absl::StartsWith(host_, "127.");
}

std::string ListenAddress::HostPort() const {
  CAIRN_CHECK(!is_unix());
  return is_ipv6() ? absl::StrCat("[", host_, "]:", port_) : absl::StrCat(host_, ":", port_);
}

std::string ListenAddress::ToString() const {
  return is_unix() ? absl::StrCat(kUnixPrefix, path_) : HostPort();
}

ListenAddress ListenAddress::WithPort(int port) const {
  CAIRN_CHECK(!is_unix() && port > 0 && port <= kPortMax);
  ListenAddress address = *this;
  address.port_ = port;
  return address;
}

absl::Status ProbeBind(const ListenAddress& address) {
  return address.is_unix() ? ProbeUnix(address) : ProbeTcp(address);
}

}  // namespace cairn
