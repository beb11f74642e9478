#include "tests/bench/datapath/wire_floor.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "tests/bench/datapath/wire_floor_protocol.h"
#include "tests/bench/datapath/wire_floor_socket.h"

namespace cairn::bench {
namespace {

constexpr absl::Duration kStartTimeout = absl::Seconds(60);

absl::Status Gone() { return absl::UnavailableError("the wire floor's peer is gone"); }

int ConnectTcp(uint16_t port, bool cubic) {
  const int socket_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CAIRN_CHECK(socket_fd >= 0);
  TuneWireFloorSocket(socket_fd);
  if (cubic) UseCubic(socket_fd);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  if (connect(socket_fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    return socket_fd;
  }
  close(socket_fd);
  return -1;
}

int ConnectUnix(const std::string& path) {
  const int socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CAIRN_CHECK(socket_fd >= 0);
  TuneWireFloorSocket(socket_fd);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  CAIRN_CHECK(path.size() < sizeof(address.sun_path));
  std::memcpy(address.sun_path, path.data(), path.size());
  if (connect(socket_fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    return socket_fd;
  }
  close(socket_fd);
  return -1;
}

}  // namespace

absl::StatusOr<std::unique_ptr<WireFloor>> WireFloor::Start(const std::string& programs,
                                                            Transport transport,
                                                            uint64_t memory_bytes) {
  const std::string folder = testing::MakeTempFolder();
  testing::ChildProcess::Options options;
  const std::string path = absl::StrCat(folder, "/floor");
  options.command = {absl::StrCat(programs, "/cairn_wire_floor_peer"), absl::StrCat(memory_bytes),
                     transport == Transport::kUnix  ? path
                     : transport == Transport::kTcp ? "tcp"
                                                    : "cubic"};
  options.log_path = absl::StrCat(folder, "/log");
  options.talk = true;
  absl::StatusOr<std::unique_ptr<testing::ChildProcess>> peer =
      testing::ChildProcess::Start(std::move(options));
  if (!peer.ok()) return peer.status();
  const absl::StatusOr<std::string> port = (*peer)->ReadLine(kStartTimeout);
  if (!port.ok()) return port.status();
  return std::unique_ptr<WireFloor>(new WireFloor(
      folder, transport, transport == Transport::kUnix ? path : *port, *std::move(peer)));
}

WireFloor::WireFloor(std::string folder, Transport transport, std::string address,
                     std::unique_ptr<testing::ChildProcess> peer)
    : folder_(std::move(folder)),
      transport_(transport),
      address_(std::move(address)),
      peer_(std::move(peer)) {}

WireFloor::~WireFloor() {
  peer_->Kill9();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

absl::StatusOr<std::unique_ptr<WireFloor::Connection>> WireFloor::Connect() const {
  uint32_t port = 0;
  const bool tcp = absl::SimpleAtoi(address_, &port);
  const int socket_fd =
      tcp ? ConnectTcp(static_cast<uint16_t>(port), transport_ == Transport::kTcpCubic)
          : ConnectUnix(address_);
  if (socket_fd < 0) return Gone();
  return std::make_unique<Connection>(socket_fd);
}

WireFloor::Connection::~Connection() { close(socket_); }

absl::Status WireFloor::Connection::Get(uint64_t offset, absl::Span<uint8_t> bytes,
                                        uint32_t segment_bytes) {
  CAIRN_CHECK(bytes.size() % segment_bytes == 0);
  const WireFloorRequest request{WireFloorOp::kGet, segment_bytes, offset, bytes.size()};
  uint64_t digest = 0;
  const bool ok = SendAll(socket_, &request, sizeof(request)) &&
                  ReceiveAndHash(socket_, bytes.data(), bytes.size(), segment_bytes, &digest);
  return ok ? absl::OkStatus() : Gone();
}

absl::Status WireFloor::Connection::Put(uint64_t offset, absl::Span<const uint8_t> bytes,
                                        uint32_t segment_bytes) {
  CAIRN_CHECK(bytes.size() % segment_bytes == 0);
  const WireFloorRequest request{WireFloorOp::kPut, segment_bytes, offset, bytes.size()};
  uint64_t digest = 0;
  const bool ok = SendAll(socket_, &request, sizeof(request)) &&
                  HashAndSend(socket_, bytes.data(), bytes.size(), segment_bytes) &&
                  ReceiveAll(socket_, &digest, sizeof(digest));
  return ok ? absl::OkStatus() : Gone();
}

}  // namespace cairn::bench
