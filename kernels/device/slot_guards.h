// SlotGuards: which streams still read or write which bytes of a device, so that no slot is written
// before its readers are through, and none is read before its writer is.
//
// Whoever gives a stream work calls Before..., gives the work, then After..., in this order and for
// the same ranges. Before makes the stream wait, not the caller. Where a slot is freed and given to
// another its ranges stay known, so that the next writer's stream waits for the last readers':
// freeing needs no wait. Ranges of one batch share one event; ranges of other sizes may overlap.
//
// Thread-safe; two callers must not work on one range between each other's Before and After, which
// holding the slot sees to. Borrows the device. Streams that were named live as long as it does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/device/device.h"

namespace cairn::kernels {

struct DeviceRange {
  const std::byte* start = nullptr;
  uint64_t bytes = 0;
};

class SlotGuards {
 public:
  explicit SlotGuards(Device* device) : device_(device) {}
  ~SlotGuards();
  SlotGuards(const SlotGuards&) = delete;
  SlotGuards& operator=(const SlotGuards&) = delete;

  Problem BeforeRead(const DeviceRange* ranges, size_t count, Stream stream);
  Problem AfterRead(const DeviceRange* ranges, size_t count, Stream stream);
  Problem BeforeWrite(const DeviceRange* ranges, size_t count, Stream stream);
  Problem AfterWrite(const DeviceRange* ranges, size_t count, Stream stream);

 private:
  // Shared by all ranges of a batch; the event is free again with the last of them.
  struct Mark {
    Event event;
    void* stream = nullptr;
  };
  using MarkRef = std::shared_ptr<Mark>;
  struct Use {
    uint64_t bytes = 0;
    MarkRef writer;
    std::vector<MarkRef> readers;  // One a stream: a later mark covers the earlier ones.
  };

  Problem WaitFor(const DeviceRange* ranges, size_t count, Stream stream, bool readers_too);
  Problem MakeMark(Stream stream, MarkRef* mark);

  Device* const device_;
  std::mutex mutex_;  // Guards all below.
  std::vector<Event> free_;
  std::multimap<const std::byte*, Use> uses_;  // By start.
  uint64_t longest_ = 0;                       // Of `uses_`, or longer.
};

}  // namespace cairn::kernels
