#include "cache_node/spill/device_transfers.h"

#include "cache_node/store/disk_task.h"
#include "common/base/check.h"

namespace cairn::node {

void AddTransfers(const PayloadMap& map, absl::Span<const uint64_t> digests, std::byte* device,
                  absl::Span<uint8_t> host, std::vector<DeviceTransfer>* transfers) {
  CAIRN_CHECK(host.size() == map.block_bytes() && digests.size() == map.segment_count());
  uint64_t begin = 0;
  uint64_t end = 0;  // Of the run so far.
  const auto add = [&] {
    if (begin < end) transfers->push_back({device + begin, host.subspan(begin, end - begin)});
  };
  for (const PayloadMap::Part& part : map.parts()) {
    if (!RecordHasPart(part, digests)) continue;
    const size_t last = part.first_segment + part.layers - 1;
    const uint64_t part_begin = map.SegmentOffset(part.first_segment);
    if (part_begin != end) {
      add();
      begin = part_begin;
    }
    end = map.SegmentOffset(last) + map.SegmentBytesAt(last);
  }
  add();
}

}  // namespace cairn::node
