// MemoryTermsOf: what a node may come to hold, part by part. Their sum is kept under the limit.
#pragma once

#include <string>
#include <vector>

#include "common/server/byte_size.h"

namespace cairn::node {

struct NodeConfig;

struct MemoryTerm {
  std::string name;
  ByteSize size;
  std::string flag;  // What makes it smaller; empty when it is fixed.
};

// What one connection may keep in the transport: its buffers, and those of a writer's stream that
// was not admitted yet (64 KiB of lookahead, and the stream itself).
inline constexpr ByteSize kConnectionBytes = ByteSize::KiB(256);
// Requests that wait for a thread of the executor; over it they are refused.
inline constexpr ByteSize kWaitingCallBytes = ByteSize::MiB(16);
// Links of open leases, an allowance and no bound: what a block in a lease takes beside the block,
// for each so many leased bytes. Leased blocks that are smaller on average take more.
inline constexpr ByteSize kLeaseLinkBytes = ByteSize(96);
inline constexpr ByteSize kLeasedBlockBytes = ByteSize::KiB(16);
// Code, stacks, gRPC's own, metrics.
inline constexpr ByteSize kBaseBytes = ByteSize::MiB(64);

std::vector<MemoryTerm> MemoryTermsOf(const NodeConfig& config);

// What gRPC is told that its transports may hold: connections and payload in flight.
ByteSize TransportBytesOf(const NodeConfig& config);

}  // namespace cairn::node
