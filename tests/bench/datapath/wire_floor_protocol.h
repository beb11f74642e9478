// What the two ends of the wire floor say to each other: one request, then bytes. Loopback only, so
// in the machine's byte order.
#pragma once

#include <cstdint>

namespace cairn::bench {

enum class WireFloorOp : uint32_t {
  kGet = 1,  // The peer sends the parts' bytes.
  kPut = 2,  // The bytes follow; the peer hashes them and answers with one u64: the last digest.
};

struct WireFloorRequest {
  WireFloorOp op = WireFloorOp::kGet;
  uint32_t segment_bytes = 0;  // What one digest covers; divides the bytes.
  uint64_t offset = 0;         // In the peer's memory.
  uint64_t bytes = 0;
};
static_assert(sizeof(WireFloorRequest) == 24);

// Largest send or receive call, and the sockets' buffers.
inline constexpr uint64_t kWireFloorCallBytes = 256 << 10;
inline constexpr int kWireFloorSocketBytes = 4 << 20;

}  // namespace cairn::bench
