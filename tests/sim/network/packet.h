// Packet: one message on its way. A value that can be moved only.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace cairn::sim {

// The calls of the contract.
enum class Method : uint8_t {
  kRoute,
  kLookupPrefix,
  kReportOutcome,
  kRegisterNamespace,
  kRetireNamespace,
  kClearScope,
  kLookup,
  kGetLease,
  kRenewLease,
  kEndLease,
  kGet,
  kReserve,
  kWrite,
  kCommit,
  kAbort,
  kReportMismatch,
  kDelete,
  kWatchBlocks,
};

const char* MethodName(Method method);

struct Packet {
  Packet() = default;
  Packet(Packet&&) = default;
  Packet& operator=(Packet&&) = default;

  // An encoded message,
  std::string bytes;
  // or a frame of payload, whose slices borrow the memory of the node that sent it.
  grpc::ByteBuffer frame;
  bool is_frame = false;
  // Digest of the frame's payload when it was sent.
  uint64_t payload_digest = 0;
  // The contract copes with its loss, repetition or delay behind the next one: a feed's batch or
  // heartbeat.
  bool expendable = false;
  // Set by the network.
  absl::Time sent_at;
};

}  // namespace cairn::sim
