#include "cache_node/local/local_config.h"

#include "cache_node/tiers/host_memory.h"
#include "common/local/packet_socket.h"
#include "common/rpc/field_status.h"

namespace cairn::node {

void LocalConfig::Check(ConfigErrors& errors) const {
  if (on() && socket != kAuto) {
    errors.Add(InField("--local-socket", PacketSocket::CheckName(socket)));
  }
  errors.CheckRange("local-connections-max", int64_t{connections_max}, int64_t{1}, int64_t{10'000});
  errors.CheckRange("local-staging-memory", staging_memory, ByteSize(), ByteSize::GiB(1 << 10));
  errors.CheckRange("local-return-ms", return_within, absl::Milliseconds(10), absl::Hours(1));
}

ByteSize LocalConfig::GenerationBytes(ByteSize host_memory) {
  const uint64_t slots = host_memory.bytes() / HostMemory::kLentSlotBytesMin;
  // A segment's page is rounded up; there are as many segments as the pool has.
  const uint64_t segments =
      HostMemory::kSegmentsAtLeast + host_memory.bytes() / HostMemory::kSegmentBytesMax;
  return ByteSize(slots * sizeof(uint64_t) + segments * MemorySegment::PageBytes());
}

}  // namespace cairn::node
