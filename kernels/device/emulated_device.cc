#include "kernels/device/emulated_device.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace cairn::kernels {
namespace {

constexpr std::align_val_t kAlignment{256};
// A NaN as float32, bfloat16, float16 and float8 alike.
constexpr int kUnwritten = 0xff;
// Of kRandom, at each call.
constexpr uint64_t kStepsAtOnceMax = 4;

bool Holds(const std::map<const std::byte*, uint64_t>& ranges, const void* memory, uint64_t bytes) {
  const auto* start = static_cast<const std::byte*>(memory);
  auto range = ranges.upper_bound(start);
  // Registered ranges may lie side by side, and a copy over several.
  const std::byte* covered = start;
  if (range == ranges.begin()) return false;
  for (--range; range != ranges.end() && range->first <= covered; ++range) {
    covered = std::max(covered, range->first + range->second);
    if (covered >= start + bytes) return covered > start || bytes == 0;
  }
  return false;
}

bool Overlaps(const std::map<const std::byte*, uint64_t>& ranges, const std::byte* start,
              uint64_t bytes) {
  auto next = ranges.lower_bound(start);
  if (next != ranges.end() && next->first < start + bytes) return true;
  if (next == ranges.begin()) return false;
  --next;
  return next->first + next->second > start;
}

std::string AsText(const void* memory, uint64_t bytes) {
  return std::to_string(bytes) + " bytes at " + std::to_string(reinterpret_cast<uintptr_t>(memory));
}

}  // namespace

EmulatedDevice::EmulatedDevice(const Options& options)
    : options_(options), facts_{"emulated", options.memory_bytes}, random_(options.seed) {}

EmulatedDevice::~EmulatedDevice() {
  const std::lock_guard<std::mutex> lock(mutex_);
  FinishAll();
  for (const auto& [start, bytes] : allocated_) {
    if (options_.registry != nullptr) options_.registry->Remove(start);
    ::operator delete(const_cast<std::byte*>(start), kAlignment);
  }
}

Problem EmulatedDevice::Allocate(uint64_t bytes, std::byte** memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!failed_.empty()) return failed_;
  if (bytes == 0 || bytes > options_.memory_bytes - allocated_bytes_) {
    return "the emulated device has " + std::to_string(options_.memory_bytes - allocated_bytes_) +
           " bytes free, " + std::to_string(bytes) + " were asked for";
  }
  void* made = ::operator new(bytes, kAlignment, std::nothrow);
  if (made == nullptr) {
    return "no memory for " + std::to_string(bytes) + " bytes of the emulated device";
  }
  std::memset(made, kUnwritten, bytes);
  *memory = static_cast<std::byte*>(made);
  if (options_.registry != nullptr) options_.registry->Add(*memory, bytes);
  allocated_.emplace(*memory, bytes);
  allocated_bytes_ += bytes;
  return {};
}

void EmulatedDevice::Free(std::byte* memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto allocated = allocated_.find(memory);
  if (allocated == allocated_.end()) return;
  FinishAll();
  if (options_.registry != nullptr) options_.registry->Remove(memory);
  allocated_bytes_ -= allocated->second;
  allocated_.erase(allocated);
  ::operator delete(memory, kAlignment);
}

Problem EmulatedDevice::RegisterHost(void* memory, uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!failed_.empty()) return failed_;
  const auto* start = static_cast<const std::byte*>(memory);
  if (memory == nullptr || bytes == 0) return "nothing to register: " + AsText(memory, bytes);
  if (Overlaps(registered_, start, bytes)) {
    return "registered already, in part or whole: " + AsText(memory, bytes);
  }
  registered_.emplace(start, bytes);
  return {};
}

Problem EmulatedDevice::UnregisterHost(void* memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // As hardware does: what is under way over the link ends first.
  FinishAll();
  if (registered_.erase(static_cast<const std::byte*>(memory)) == 0) {
    return "not registered: " + AsText(memory, 0);
  }
  return failed_;
}

Problem EmulatedDevice::MakeStream(Stream* stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!failed_.empty()) return failed_;
  streams_.push_back(std::make_unique<StreamWork>());
  stream->handle = streams_.back().get();
  return {};
}

void EmulatedDevice::DestroyStream(Stream stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Finish(Of(stream));
  const auto at = std::find_if(streams_.begin(), streams_.end(),
                               [&](const auto& one) { return one.get() == Of(stream); });
  if (at != streams_.end()) streams_.erase(at);
}

Problem EmulatedDevice::MakeEvent(Event* event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!failed_.empty()) return failed_;
  // A number, for what nobody may look into.
  event->handle = reinterpret_cast<void*>(++last_event_);
  const auto never = std::make_shared<Point>();
  never->done = true;
  events_.emplace(event->handle, never);
  return {};
}

void EmulatedDevice::DestroyEvent(Event event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  events_.erase(event.handle);
}

Problem EmulatedDevice::Record(Event event, Stream stream) {
  Work work;
  work.kind = Work::Kind::kRecord;
  work.point = std::make_shared<Point>();
  work.point->stream = Of(stream);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!failed_.empty()) return failed_;
  events_.at(event.handle) = work.point;
  return Give(stream, std::move(work));
}

Problem EmulatedDevice::StreamWait(Stream stream, Event event) {
  Work work;
  work.kind = Work::Kind::kWait;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!failed_.empty()) return failed_;
  work.point = events_.at(event.handle);
  if (work.point->done) return {};
  return Give(stream, std::move(work));
}

Problem EmulatedDevice::Poll(Event event, EventState* state) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!failed_.empty()) return failed_;
  const PointRef point = events_.at(event.handle);
  *state = EventState::kPending;
  if (!point->done && point->polls++ < options_.pending_polls) return {};
  if (options_.order == Order::kRandom) {
    StepSome();
  } else {
    FinishPoint(*point);
  }
  if (point->done) *state = EventState::kDone;
  return failed_;
}

Problem EmulatedDevice::Wait(Event event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!failed_.empty()) return failed_;
  const PointRef point = events_.at(event.handle);
  if (!point->done) ++counts_.waits;
  FinishPoint(*point);
  return failed_;
}

Problem EmulatedDevice::CopyBatch(CopyDirection direction, const DeviceCopy* copies, size_t count,
                                  Stream stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!failed_.empty()) return failed_;
  for (size_t i = 0; i < count; ++i) {
    Problem problem = CheckCopy(direction, copies[i]);
    if (!problem.empty()) return problem;
  }
  Work work;
  work.copies.assign(copies, copies + count);
  return Give(stream, std::move(work));
}

Problem EmulatedDevice::Enqueue(Stream stream, std::function<Problem()> work) {
  Work kernel;
  kernel.kind = Work::Kind::kKernel;
  kernel.kernel = std::move(work);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!failed_.empty()) return failed_;
  return Give(stream, std::move(kernel));
}

bool EmulatedDevice::Step(Stream stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return StepOf(Of(stream));
}

size_t EmulatedDevice::PendingOf(Stream stream) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return Of(stream)->queue.size();
}

void EmulatedDevice::Fail(const Problem& problem) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (failed_.empty()) failed_ = problem;
}

size_t EmulatedDevice::events() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return events_.size();
}

EmulatedDevice::Counts EmulatedDevice::counts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counts_;
}

Problem EmulatedDevice::Give(Stream stream, Work work) {
  Of(stream)->queue.push_back(std::move(work));
  if (options_.order == Order::kEager) Finish(Of(stream));
  if (options_.order == Order::kRandom) StepSome();
  return {};
}

// What a failed device was given is dropped unseen, and its events count as come to, so that nobody
// waits for them.
bool EmulatedDevice::StepOf(StreamWork* stream) {
  if (stream->queue.empty()) return false;
  Work& work = stream->queue.front();
  if (work.kind == Work::Kind::kWait && !work.point->done) return false;
  Do(&work);
  stream->queue.pop_front();
  return true;
}

void EmulatedDevice::Do(Work* work) {
  if (work->kind == Work::Kind::kRecord) {
    work->point->done = true;
  } else if (work->kind == Work::Kind::kKernel && failed_.empty()) {
    failed_ = work->kernel();
  } else if (work->kind == Work::Kind::kCopies && failed_.empty()) {
    for (const DeviceCopy& copy : work->copies) {
      std::memcpy(copy.to, copy.from, copy.bytes);
      ++counts_.copies;
      counts_.copied_bytes += copy.bytes;
    }
  }
}

// Of a stream that waits for an event the event's stream goes first. An event is recorded before
// somebody waits for it, so this comes to an end.
void EmulatedDevice::Finish(StreamWork* stream) {
  while (!stream->queue.empty()) {
    StreamWork* next = stream;
    while (!StepOf(next)) next = next->queue.front().point->stream;
  }
}

void EmulatedDevice::FinishAll() {
  for (const std::unique_ptr<StreamWork>& stream : streams_) Finish(stream.get());
}

void EmulatedDevice::FinishPoint(const Point& point) {
  while (!point.done) {
    StreamWork* next = point.stream;
    while (!StepOf(next)) next = next->queue.front().point->stream;
  }
}

void EmulatedDevice::StepSome() {
  for (uint64_t steps = random_() % (kStepsAtOnceMax + 1); steps > 0 && !streams_.empty();
       --steps) {
    StepOf(streams_[random_() % streams_.size()].get());
  }
}

bool EmulatedDevice::IsAllocated(const void* memory, uint64_t bytes) const {
  return Holds(allocated_, memory, bytes);
}

bool EmulatedDevice::IsRegistered(const void* memory, uint64_t bytes) const {
  return Holds(registered_, memory, bytes);
}

Problem EmulatedDevice::CheckCopy(CopyDirection direction, const DeviceCopy& copy) const {
  if (copy.bytes == 0) return {};
  if (direction == CopyDirection::kHostToDevice ? !IsRegistered(copy.from, copy.bytes)
                                                : !IsAllocated(copy.from, copy.bytes)) {
    return "a copy reads " + AsText(copy.from, copy.bytes) +
           (direction == CopyDirection::kHostToDevice ? ", host memory that is not registered"
                                                      : ", which the device did not allocate");
  }
  if (direction == CopyDirection::kDeviceToHost ? !IsRegistered(copy.to, copy.bytes)
                                                : !IsAllocated(copy.to, copy.bytes)) {
    return "a copy writes " + AsText(copy.to, copy.bytes) +
           (direction == CopyDirection::kDeviceToHost ? ", host memory that is not registered"
                                                      : ", which the device did not allocate");
  }
  return {};
}

}  // namespace cairn::kernels
