// cairn_wire_floor_peer MEMORY_BYTES tcp|cubic|PATH: the other end of WireFloor.
//
// Listens on a free port of loopback, or on the Unix socket PATH, says which on stdout, and serves
// each connection on a thread of its own until stdin ends.
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "common/base/check.h"
#include "tests/bench/datapath/wire_floor_protocol.h"
#include "tests/bench/datapath/wire_floor_socket.h"

namespace cairn::bench {
namespace {

void Serve(int socket_fd, std::vector<uint8_t>* memory) {
  WireFloorRequest request;
  bool ok = true;
  while (ok && ReceiveAll(socket_fd, &request, sizeof(request))) {
    CAIRN_CHECK(request.bytes <= memory->size() &&
                request.offset <= memory->size() - request.bytes);
    uint8_t* const bytes = memory->data() + request.offset;
    if (request.op == WireFloorOp::kGet) {
      ok = SendAll(socket_fd, bytes, request.bytes);
      continue;
    }
    uint64_t digest = 0;
    ok = ReceiveAndHash(socket_fd, bytes, request.bytes, request.segment_bytes, &digest) &&
         SendAll(socket_fd, &digest, sizeof(digest));
  }
  close(socket_fd);
}

int ListenTcp(bool cubic) {
  const int socket_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CAIRN_CHECK(socket_fd >= 0);
  TuneWireFloorSocket(socket_fd);  // Accepted sockets inherit it.
  if (cubic) UseCubic(socket_fd);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  CAIRN_CHECK(bind(socket_fd, reinterpret_cast<const sockaddr*>(&address), size) == 0);
  CAIRN_CHECK(listen(socket_fd, SOMAXCONN) == 0);
  CAIRN_CHECK(getsockname(socket_fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  std::cout << ntohs(address.sin_port) << std::endl;
  return socket_fd;
}

int ListenUnix(const std::string& path) {
  const int socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CAIRN_CHECK(socket_fd >= 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  CAIRN_CHECK(path.size() < sizeof(address.sun_path));
  std::memcpy(address.sun_path, path.data(), path.size());
  CAIRN_CHECK(bind(socket_fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  CAIRN_CHECK(listen(socket_fd, SOMAXCONN) == 0);
  std::cout << path << std::endl;
  return socket_fd;
}

int Run(int argc, char** argv) {
  uint64_t memory_bytes = 0;
  if (argc != 3 || !absl::SimpleAtoi(argv[1], &memory_bytes)) return 2;
  const std::string where = argv[2];
  std::vector<uint8_t> memory(memory_bytes);
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<uint8_t>(i >> 7);
  const bool tcp = where == "tcp" || where == "cubic";
  const int listening = tcp ? ListenTcp(where == "cubic") : ListenUnix(where);
  std::thread([listening, &memory] {
    while (true) {
      const int socket_fd = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket_fd < 0) continue;
      TuneWireFloorSocket(socket_fd);
      std::thread(Serve, socket_fd, &memory).detach();
    }
  }).detach();
  std::string line;
  while (std::getline(std::cin, line)) {
  }
  _exit(0);  // Without waiting for the threads.
}

}  // namespace
}  // namespace cairn::bench

int main(int argc, char** argv) { return cairn::bench::Run(argc, argv); }
