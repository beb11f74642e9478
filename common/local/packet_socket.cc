#include "common/local/packet_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/local/local_limits.h"

namespace cairn {
namespace {

struct Address {
  sockaddr_un name{};
  socklen_t size = 0;
};

Address AddressOf(absl::string_view name) {
  Address address;
  address.name.sun_family = AF_UNIX;
  std::memcpy(address.name.sun_path, name.data(), name.size());
  const bool abstract = name[0] == '@';
  if (abstract) address.name.sun_path[0] = '\0';
  address.size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + (abstract ? 0 : 1));
  return address;
}

const sockaddr* Raw(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address.name);
}

Descriptor NewSocket() {
  return Descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

absl::Status SystemError(absl::string_view call, absl::string_view name) {
  return absl::UnavailableError(
      absl::StrCat("local socket ", name, ": ", call, ": ", std::strerror(errno)));
}

// SO_PEERPIDFD, which older headers do not have.
constexpr int kPeerPidfd = 77;
// Room for the control message of so many descriptors.
constexpr size_t kControlBytes = CMSG_SPACE(sizeof(int) * kLocalDescriptorsPerPacketMax);

// False: it did not come within `wait`. An interruption counts as the end of the wait, and as true:
// the caller looks, and has a deadline where it matters.
bool AwaitEvent(const Descriptor& descriptor, short event, absl::Duration wait) {
  if (wait <= absl::ZeroDuration()) return false;
  pollfd polled{.fd = descriptor.get(), .events = event, .revents = 0};
  const int64_t ms = absl::ToInt64Milliseconds(absl::Ceil(wait, absl::Milliseconds(1)));
  return poll(&polled, 1, static_cast<int>(std::min<int64_t>(ms, 1 << 30))) != 0;
}

std::vector<Descriptor> DescriptorsOf(msghdr* message) {
  std::vector<Descriptor> descriptors;
  for (cmsghdr* one = CMSG_FIRSTHDR(message); one != nullptr; one = CMSG_NXTHDR(message, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (one->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(one) + i * sizeof(int), sizeof(int));
      descriptors.emplace_back(fd);
    }
  }
  return descriptors;
}

}  // namespace

absl::Status PacketSocket::CheckName(absl::string_view name) {
  const size_t bytes_max = sizeof(sockaddr_un::sun_path) - 1;
  if (!name.empty() && name != "@" && name.size() <= bytes_max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "' is no name of a socket: give a path, or @ and a name, of at most ",
                   bytes_max, " bytes"));
}

absl::StatusOr<PacketSocket> PacketSocket::Listen(absl::string_view name, int backlog) {
  if (absl::Status status = CheckName(name); !status.ok()) return status;
  const Address address = AddressOf(name);
  if (name[0] != '@') {
    struct stat found {};
    const bool there = lstat(address.name.sun_path, &found) == 0;
    if (there && !S_ISSOCK(found.st_mode)) {
      return absl::FailedPreconditionError(
          absl::StrCat(name, " is there and no socket: give another path"));
    }
    if (there && Connect(name).ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("somebody listens on ", name, " already: give another path"));
    }
    if (there) unlink(address.name.sun_path);
  }
  Descriptor descriptor = NewSocket();
  if (!descriptor) return SystemError("socket", name);
  if (bind(descriptor.get(), Raw(address), address.size) != 0) return SystemError("bind", name);
  if (name[0] != '@' && chmod(address.name.sun_path, 0666) != 0) return SystemError("chmod", name);
  if (listen(descriptor.get(), backlog) != 0) return SystemError("listen", name);
  return PacketSocket(std::move(descriptor));
}

absl::StatusOr<PacketSocket> PacketSocket::Connect(absl::string_view name) {
  if (absl::Status status = CheckName(name); !status.ok()) return status;
  Descriptor descriptor = NewSocket();
  if (!descriptor) return SystemError("socket", name);
  const Address address = AddressOf(name);
  if (connect(descriptor.get(), Raw(address), address.size) != 0) {
    return SystemError("connect", name);
  }
  return PacketSocket(std::move(descriptor));
}

absl::StatusOr<PacketSocket> PacketSocket::Accept() const {
  while (true) {
    const int fd = accept4(descriptor_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) return PacketSocket(Descriptor(fd));
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN) return PacketSocket();
    return absl::ResourceExhaustedError(absl::StrCat("accept: ", std::strerror(errno)));
  }
}

Descriptor PacketSocket::WatchPeer() const {
  // A number names a process only as long as it lives, and only within its namespace; asked for
  // directly, the descriptor is of who connected.
  int pidfd = -1;
  socklen_t size = sizeof(pidfd);
  if (getsockopt(descriptor_.get(), SOL_SOCKET, kPeerPidfd, &pidfd, &size) == 0) {
    return Descriptor(pidfd);
  }
  ucred peer{};
  size = sizeof(peer);
  const int got = getsockopt(descriptor_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size);
  if (got != 0 || peer.pid <= 0) return Descriptor();
  return Descriptor(static_cast<int>(syscall(SYS_pidfd_open, peer.pid, 0)));
}

absl::Status PacketSocket::Send(absl::string_view packet, absl::Span<const int> descriptors,
                                absl::Duration wait) const {
  CAIRN_CHECK(packet.size() <= kLocalPacketBytesMax &&
              descriptors.size() <= kLocalDescriptorsPerPacketMax);
  iovec bytes{.iov_base = const_cast<char*>(packet.data()), .iov_len = packet.size()};
  alignas(cmsghdr) char control[kControlBytes] = {};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors.size());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
    std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof(int) * descriptors.size());
  }
  while (sendmsg(descriptor_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno == EINTR) continue;
    const bool full = errno == EAGAIN;
    // Once: what it then finds full is not read.
    if (full && AwaitEvent(descriptor_, POLLOUT, std::exchange(wait, absl::ZeroDuration())))
      continue;
    if (errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS) {
      return absl::ResourceExhaustedError("the other end of the local socket does not read");
    }
    return absl::UnavailableError(absl::StrCat("local socket: send: ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

absl::StatusOr<PacketSocket::Packet> PacketSocket::Receive(absl::Span<char> buffer,
                                                           size_t descriptors_max,
                                                           absl::Duration wait) const {
  CAIRN_CHECK(descriptors_max <= kLocalDescriptorsPerPacketMax);
  if (wait > absl::ZeroDuration() && !AwaitEvent(descriptor_, POLLIN, wait)) {
    return absl::DeadlineExceededError("nothing came over the local socket");
  }
  iovec bytes{.iov_base = buffer.data(), .iov_len = buffer.size()};
  alignas(cmsghdr) char control[kControlBytes];
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = descriptors_max > 0 ? control : nullptr;
  message.msg_controllen = descriptors_max > 0 ? CMSG_SPACE(sizeof(int) * descriptors_max) : 0;
  ssize_t got = recvmsg(descriptor_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    return absl::DeadlineExceededError("nothing came over the local socket");
  }
  if (got < 0) {
    return absl::UnavailableError(absl::StrCat("local socket: receive: ", std::strerror(errno)));
  }
  Packet packet;
  packet.descriptors = DescriptorsOf(&message);
  if (got == 0) return absl::UnavailableError("the other end of the local socket is closed");
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    return absl::InvalidArgumentError("a packet on the local socket is larger than it may be");
  }
  packet.bytes = absl::string_view(buffer.data(), static_cast<size_t>(got));
  return packet;
}

}  // namespace cairn
