// WireFloor: the floor of the remote data path: a plain socket between two processes that moves the
// same bytes with the same hashing.
//
// The other end (cairn_wire_floor_peer) holds touched memory as a node holds its pool. A get: one
// request, the peer sends from its memory, this end receives into the caller's and hashes each
// segment when it is there. A put: this end hashes each segment and sends it from the caller's
// memory, the peer receives into its own, hashes, and answers once. So both sides hash where the
// product does, and nobody copies beyond what the kernel does. Nothing is framed, checked, admitted
// or looked up. Sends and receives of up to 256 KiB and socket buffers of 4 MiB were the fastest of
// calls of 64 KiB to 1 MiB and buffers of 128 KiB to 4 MiB or the kernel's own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tests/testing/child_process.h"

namespace cairn::bench {

class WireFloor {
 public:
  // kTcp: under the congestion control that the kernel gives to every socket, ours too. kTcpCubic:
  // under CUBIC; BBR, where it is the kernel's default, paces loopback to half of that.
  enum class Transport { kTcp, kTcpCubic, kUnix };

  // One connection, as one rank has it; blocking. Used by one thread at a time.
  class Connection {
   public:
    explicit Connection(int socket) : socket_(socket) {}
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    // UNAVAILABLE: the peer is gone. REQUIRES: segment_bytes divides the size; offset and size lie
    // within the peer's memory.
    absl::Status Get(uint64_t offset, absl::Span<uint8_t> bytes, uint32_t segment_bytes);
    absl::Status Put(uint64_t offset, absl::Span<const uint8_t> bytes, uint32_t segment_bytes);

   private:
    const int socket_;
  };

  // Starts a peer with `memory_bytes`. `programs` is the folder of cairn_wire_floor_peer.
  static absl::StatusOr<std::unique_ptr<WireFloor>> Start(const std::string& programs,
                                                          Transport transport,
                                                          uint64_t memory_bytes);

  ~WireFloor();

  absl::StatusOr<std::unique_ptr<Connection>> Connect() const;

 private:
  WireFloor(std::string folder, Transport transport, std::string address,
            std::unique_ptr<testing::ChildProcess> peer);

  const std::string folder_;
  const Transport transport_;
  const std::string address_;  // A port of loopback, or a path.
  const std::unique_ptr<testing::ChildProcess> peer_;
};

}  // namespace cairn::bench
