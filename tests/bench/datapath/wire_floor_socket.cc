#include "tests/bench/datapath/wire_floor_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "kernels/byte_hash.h"
#include "tests/bench/datapath/wire_floor_protocol.h"

namespace cairn::bench {
namespace {

// Bytes received by one call, or 0.
size_t ReceiveSome(int socket, uint8_t* bytes, size_t size) {
  while (true) {
    const ssize_t got = recv(socket, bytes, std::min<size_t>(size, kWireFloorCallBytes), 0);
    if (got > 0) return static_cast<size_t>(got);
    if (got == 0 || errno != EINTR) return 0;
  }
}

}  // namespace

void TuneWireFloorSocket(int socket) {
  const int one = 1;
  setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &kWireFloorSocketBytes, sizeof(kWireFloorSocketBytes));
  setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &kWireFloorSocketBytes, sizeof(kWireFloorSocketBytes));
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));  // Fails on Unix sockets.
}

void UseCubic(int socket) {
  static constexpr char kName[] = "cubic";
  setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, kName, sizeof(kName) - 1);
}

bool SendAll(int socket, const void* bytes, size_t size) {
  const auto* at = static_cast<const uint8_t*>(bytes);
  while (size > 0) {
    const ssize_t sent =
        send(socket, at, std::min<size_t>(size, kWireFloorCallBytes), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
}

bool ReceiveAll(int socket, void* bytes, size_t size) {
  auto* at = static_cast<uint8_t*>(bytes);
  while (size > 0) {
    const size_t got = ReceiveSome(socket, at, size);
    if (got == 0) return false;
    at += got;
    size -= got;
  }
  return true;
}

bool ReceiveAndHash(int socket, uint8_t* bytes, size_t size, size_t segment_bytes,
                    uint64_t* digest) {
  size_t received = 0;
  size_t hashed = 0;
  while (received < size) {
    const size_t got = ReceiveSome(socket, bytes + received, size - received);
    if (got == 0) return false;
    received += got;
    for (; received - hashed >= segment_bytes; hashed += segment_bytes) {
      *digest = kernels::ByteHash64(bytes + hashed, segment_bytes, hashed);
    }
  }
  return true;
}

bool HashAndSend(int socket, const uint8_t* bytes, size_t size, size_t segment_bytes) {
  volatile uint64_t digest = 0;  // Or nobody would compute it.
  const size_t step = std::max<size_t>(segment_bytes, kWireFloorCallBytes);
  for (size_t begin = 0; begin < size; begin += step) {
    const size_t end = std::min(begin + step, size);
    for (size_t at = begin; at < end; at += segment_bytes) {
      digest = kernels::ByteHash64(bytes + at, segment_bytes, at);
    }
    if (!SendAll(socket, bytes + begin, end - begin)) return false;
  }
  (void)digest;
  return true;
}

}  // namespace cairn::bench
