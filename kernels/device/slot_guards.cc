#include "kernels/device/slot_guards.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace cairn::kernels {

SlotGuards::~SlotGuards() {
  uses_.clear();
  for (const Event event : free_) device_->DestroyEvent(event);
}

Problem SlotGuards::BeforeRead(const DeviceRange* ranges, size_t count, Stream stream) {
  return WaitFor(ranges, count, stream, /*readers_too=*/false);
}

Problem SlotGuards::BeforeWrite(const DeviceRange* ranges, size_t count, Stream stream) {
  return WaitFor(ranges, count, stream, /*readers_too=*/true);
}

// What was recorded in the stream itself comes first anyway.
Problem SlotGuards::WaitFor(const DeviceRange* ranges, size_t count, Stream stream,
                            bool readers_too) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::set<void*> events;
  const auto note = [&](const MarkRef& mark) {
    if (mark != nullptr && mark->stream != stream.handle) events.insert(mark->event.handle);
  };
  for (size_t i = 0; i < count; ++i) {
    const std::byte* const end = ranges[i].start + ranges[i].bytes;
    const auto first = uses_.lower_bound(
        ranges[i].start -
        std::min<uint64_t>(longest_, reinterpret_cast<uintptr_t>(ranges[i].start)));
    for (auto use = first; use != uses_.end() && use->first < end; ++use) {
      if (use->first + use->second.bytes <= ranges[i].start) continue;
      note(use->second.writer);
      if (!readers_too) continue;
      for (const MarkRef& reader : use->second.readers) note(reader);
    }
  }
  for (void* handle : events) {
    Problem problem = device_->StreamWait(stream, Event{handle});
    if (!problem.empty()) return problem;
  }
  return {};
}

Problem SlotGuards::MakeMark(Stream stream, MarkRef* mark) {
  Event event;
  if (free_.empty()) {
    Problem problem = device_->MakeEvent(&event);
    if (!problem.empty()) return problem;
  } else {
    event = free_.back();
    free_.pop_back();
  }
  Problem problem = device_->Record(event, stream);
  if (!problem.empty()) {
    free_.push_back(event);
    return problem;
  }
  // What already waits for the event waits for what it stood for then, so it may be used again.
  *mark = MarkRef(new Mark{event, stream.handle}, [this](Mark* gone) {
    free_.push_back(gone->event);
    delete gone;
  });
  return {};
}

Problem SlotGuards::AfterRead(const DeviceRange* ranges, size_t count, Stream stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  MarkRef mark;
  Problem problem = MakeMark(stream, &mark);
  if (!problem.empty()) return problem;
  for (size_t i = 0; i < count; ++i) {
    auto [use, end] = uses_.equal_range(ranges[i].start);
    while (use != end && use->second.bytes != ranges[i].bytes) ++use;
    if (use == end) {
      use = uses_.emplace(ranges[i].start, Use{ranges[i].bytes, nullptr, {}});
      longest_ = std::max(longest_, ranges[i].bytes);
    }
    std::vector<MarkRef>& readers = use->second.readers;
    const auto earlier = std::find_if(readers.begin(), readers.end(), [&](const MarkRef& one) {
      return one->stream == stream.handle;
    });
    if (earlier != readers.end()) {
      *earlier = mark;
    } else {
      readers.push_back(mark);
    }
  }
  return {};
}

// The stream waited for all that overlaps, so the mark covers what lies within the range whole.
Problem SlotGuards::AfterWrite(const DeviceRange* ranges, size_t count, Stream stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  MarkRef mark;
  Problem problem = MakeMark(stream, &mark);
  if (!problem.empty()) return problem;
  for (size_t i = 0; i < count; ++i) {
    const std::byte* const end = ranges[i].start + ranges[i].bytes;
    auto use = uses_.lower_bound(ranges[i].start);
    while (use != uses_.end() && use->first < end) {
      use = use->first + use->second.bytes <= end ? uses_.erase(use) : std::next(use);
    }
    if (uses_.empty()) longest_ = 0;
    uses_.emplace(ranges[i].start, Use{ranges[i].bytes, mark, {}});
    longest_ = std::max(longest_, ranges[i].bytes);
  }
  return {};
}

}  // namespace cairn::kernels
