// DeviceTransfers: what of a block is copied between host memory and the device: the parts it has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "cache_node/tiers/device/device_tier.h"
#include "common/identity/payload_map.h"

namespace cairn::node {

// Adds what lies side by side as one transfer. `digests` say which parts there are (RecordHasPart).
void AddTransfers(const PayloadMap& map, absl::Span<const uint64_t> digests, std::byte* device,
                  absl::Span<uint8_t> host, std::vector<DeviceTransfer>* transfers);

}  // namespace cairn::node
