// PacketSocket: one end of a Unix socket that moves whole packets, with descriptors.
//
// Owns its descriptor, which does not block: calls wait only as long as they are told. Names are
// paths, or @ and an abstract name. Not thread-safe. A packet that was cut, or brought more
// descriptors than there was room for, is an error and none of it is used; descriptors that came
// are closed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/local/descriptor.h"

namespace cairn {

class PacketSocket {
 public:
  // INVALID_ARGUMENT for a name that is empty or too long.
  static absl::Status CheckName(absl::string_view name);
  // A path is made anew when a socket is there on which nobody listens; open to all users, since a
  // ticket is what lets a client in. FAILED_PRECONDITION when somebody listens there.
  static absl::StatusOr<PacketSocket> Listen(absl::string_view name, int backlog);
  // UNAVAILABLE when nobody listens there.
  static absl::StatusOr<PacketSocket> Connect(absl::string_view name);

  PacketSocket() = default;
  explicit PacketSocket(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

  int fd() const { return descriptor_.get(); }
  explicit operator bool() const { return static_cast<bool>(descriptor_); }

  // The next connection; an empty one when there is none now. RESOURCE_EXHAUSTED: no descriptors.
  absl::StatusOr<PacketSocket> Accept() const;

  // A descriptor that becomes readable when the process that connected has ended; an empty one
  // where the kernel does not tell: before Linux 6.5 of processes of another pid namespace.
  Descriptor WatchPeer() const;

  // Sends one packet, once there is room for it within `wait`. UNAVAILABLE: the peer is gone.
  // RESOURCE_EXHAUSTED: it does not read.
  absl::Status Send(absl::string_view packet, absl::Span<const int> descriptors,
                    absl::Duration wait = absl::ZeroDuration()) const;

  struct Packet {
    absl::string_view bytes;  // Within the buffer that was given.
    std::vector<Descriptor> descriptors;
  };
  // One packet, if it is there within `wait`; DEADLINE_EXCEEDED if not. UNAVAILABLE: the peer is
  // gone. INVALID_ARGUMENT: a packet that is none. `descriptors_max`: 0 takes none.
  absl::StatusOr<Packet> Receive(absl::Span<char> buffer, size_t descriptors_max,
                                 absl::Duration wait) const;

 private:
  Descriptor descriptor_;
};

}  // namespace cairn
