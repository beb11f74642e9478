#include "kernels/simt/block_machine.h"

#include <cstdarg>
#include <cstdio>

namespace cairn::simt::emulated {
namespace {

#if defined(CAIRN_SIMT_ADDRESS_SANITIZER) || defined(CAIRN_SIMT_THREAD_SANITIZER)
constexpr size_t kStackBytes = 256 << 10;
#else
constexpr size_t kStackBytes = 64 << 10;
#endif
constexpr uint32_t kAllLanes = 0xffffffffu;
constexpr size_t kTextBytesMax = 4096;  // Of a problem; longer ones are cut.

const char* NameOf(Operation operation) {
  switch (operation) {
    case Operation::kNone:
      return "nothing";
    case Operation::kSyncBlock:
      return "SyncBlock";
    case Operation::kSyncWarp:
      return "SyncWarp";
    case Operation::kShuffle:
      return "a shuffle";
    case Operation::kBallot:
      return "Ballot";
    case Operation::kLoadMatrix:
    case Operation::kLoadMatrixTransposed:
      return "LoadMatrix4";
    case Operation::kMultiplyBfloat16:
    case Operation::kMultiplyFloat16:
      return "MultiplyAdd16816";
  }
  return "?";
}

// "const char* KernelName() [with Kernel = cairn::kernels::AppendKernel<...>]", or clang's, to what
// it is about.
std::string ShortName(const std::string& name) {
  const std::string before = "Kernel = ";
  const size_t begin = name.find(before);
  if (begin == std::string::npos || name.back() != ']') return name;
  std::string kernel = name.substr(begin + before.size(), name.size() - begin - before.size() - 1);
  for (const std::string scope : {"cairn::kernels::", "on_emulated::", "cairn::simt::",
                                  "{anonymous}::", "(anonymous namespace)::"}) {
    for (size_t at = 0; (at = kernel.find(scope)) != std::string::npos;) {
      kernel.erase(at, scope.size());
    }
  }
  return kernel;
}

std::string AsText(Site site) { return std::string(site.file) + ":" + std::to_string(site.line); }

}  // namespace

BlockMachine::BlockMachine(LaneOrder order, uint64_t seed, const MemoryRegistry* registry)
    : order_(order),
      registry_(registry),
      random_(seed * 0x9e3779b97f4a7c15u | 1),
      fibers_(std::make_unique<Fiber[]>(kThreadsMax)) {}

void BlockMachine::BeginLaunch(const LaunchWork& work, LaunchReport* report) {
  work_ = work;
  report_ = report;
  current_ = this;
  if (ranges_version_ != registry_->version()) {
    ranges_version_ = registry_->version();
    ranges_ = registry_->Ranges();
    last_range_ = 0;
  }
  global_writes_.BeginLaunch();
  launch_first_block_ = block_count_ + 1;
  block_places_.clear();
  PrepareFibers();
}

void BlockMachine::EndLaunch() {
  current_ = nullptr;
  report_ = nullptr;
}

void BlockMachine::PrepareFibers() {
  if (stacks_ == nullptr || stacks_->count() < work_.threads) {
    stacks_.reset();
    stacks_ = std::make_unique<FiberStacks>(work_.threads, kStackBytes);
    fibers_prepared_ = 0;
  }
  for (; fibers_prepared_ < work_.threads; ++fibers_prepared_) {
    fibers_[fibers_prepared_].Prepare(stacks_->At(fibers_prepared_), kStackBytes, &EnterFiber);
  }
}

bool BlockMachine::RunBlock(uint32_t block_x, uint32_t block_y) {
  block_x_ = block_x;
  block_y_ = block_y;
  ++report_->blocks;
  block_places_.push_back(uint64_t{block_y} << 32 | block_x);
  global_writes_.BeginBlock(++block_count_);
  shared_.BeginBlock(work_.shared_bytes, ++block_barriers_);
  const uint32_t warps = work_.threads / kLanes;
  for (uint32_t w = 0; w < warps; ++w) {
    warps_[w].ready = kAllLanes;
    warps_[w].waiting = warps_[w].at_barrier = warps_[w].done = 0;
  }
  ready_warps_ = warps == kLanes ? kAllLanes : (1u << warps) - 1;
  threads_at_barrier_ = 0;
  threads_done_ = 0;
  thread_ = PickThread();
  scheduler_.SwitchTo(&fibers_[thread_]);
  if (!gave_up_) return true;
  gave_up_ = false;
  fibers_prepared_ = 0;
  shared_.Reset();
  for (Warp& warp : warps_) warp.banks.Settle();
  for (CopyQueue& queue : copies_) queue = {};
  return false;
}

void BlockMachine::EnterFiber() {
  Fiber::Entered();
  Current().RunThreads();
}

// A fiber is the same thread of one block after the other.
void BlockMachine::RunThreads() {
  while (true) {
    work_.body(work_.params);
    FinishThread();
  }
}

void BlockMachine::FinishThread() {
  if (!copies_[thread_].copies.empty()) {
    Fail(thread_, places_[thread_].site, "ends with asynchronous copies that it did not wait for");
  }
  Warp& warp = warps_[thread_ / kLanes];
  const uint32_t bit = 1u << (thread_ % kLanes);
  warp.done |= bit;
  warp.ready &= ~bit;
  if (warp.done == kAllLanes) report_->wide_bank_conflicts += warp.banks.Settle();
  if (warp.ready == 0) ready_warps_ &= ~(1u << (thread_ / kLanes));
  if (++threads_done_ < work_.threads) return SwitchToNext();
  fibers_[thread_].SwitchTo(&scheduler_);
}

uint32_t BlockMachine::PickBit(uint32_t bits) {
  if (order_ == LaneOrder::kForward) return static_cast<uint32_t>(__builtin_ctz(bits));
  if (order_ == LaneOrder::kReverse) return 31 - static_cast<uint32_t>(__builtin_clz(bits));
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  // The first from a random one on, around.
  const uint32_t from = static_cast<uint32_t>(random_ >> 59);
  const uint32_t turned = bits >> from | bits << ((kLanes - from) % kLanes);
  return (static_cast<uint32_t>(__builtin_ctz(turned)) + from) % kLanes;
}

uint32_t BlockMachine::PickThread() {
  const uint32_t warp = PickBit(ready_warps_);
  return warp * kLanes + PickBit(warps_[warp].ready);
}

void BlockMachine::SwitchToNext() {
  if (ready_warps_ == 0) FailDivergent();
  const uint32_t self = thread_;
  thread_ = PickThread();
  if (thread_ == self) return;
  ++report_->fiber_switches;
  fibers_[self].SwitchTo(&fibers_[thread_]);
}

void BlockMachine::SyncBlock(Site site) {
  places_[thread_] = {Operation::kSyncBlock, site};
  Warp& warp = warps_[thread_ / kLanes];
  const uint32_t bit = 1u << (thread_ % kLanes);
  warp.at_barrier |= bit;
  warp.ready &= ~bit;
  if (warp.ready == 0) ready_warps_ &= ~(1u << (thread_ / kLanes));
  if (++threads_at_barrier_ == work_.threads) ReleaseBlock();
  SwitchToNext();
}

void BlockMachine::ReleaseBlock() {
  const uint32_t warps = work_.threads / kLanes;
  for (uint32_t t = 1; t < work_.threads; ++t) {
    if (places_[t].site != places_[0].site) {
      Fail(t, places_[t].site, "waits for the block at another place than thread 0, at %s:%u",
           places_[0].site.file, places_[0].site.line);
    }
  }
  for (uint32_t w = 0; w < warps; ++w) {
    warps_[w].at_barrier = 0;
    warps_[w].ready = kAllLanes;
    report_->wide_bank_conflicts += warps_[w].banks.Settle();
  }
  ready_warps_ = warps == kLanes ? kAllLanes : (1u << warps) - 1;
  threads_at_barrier_ = 0;
  ++block_barriers_;
}

void BlockMachine::Meet(Operation operation, Site site) {
  places_[thread_] = {operation, site};
  const uint32_t w = thread_ / kLanes;
  Warp& warp = warps_[w];
  const uint32_t bit = 1u << (thread_ % kLanes);
  if (warp.waiting == 0) {
    warp.meeting = places_[thread_];
  } else if (warp.meeting.operation != operation || warp.meeting.site != site) {
    Fail(thread_, site, "is at %s while others of its warp are at %s (%s:%u)", NameOf(operation),
         NameOf(warp.meeting.operation), warp.meeting.site.file, warp.meeting.site.line);
  }
  warp.waiting |= bit;
  warp.ready &= ~bit;
  if (warp.waiting == kAllLanes) {
    warp.waiting = 0;
    report_->wide_bank_conflicts += warp.banks.Settle();
    Complete(&warp);
    warp.ready = kAllLanes;
  } else if (warp.ready == 0) {
    ready_warps_ &= ~(1u << w);
  }
  SwitchToNext();
}

void BlockMachine::Complete(Warp* warp) {
  LaneSlot* const slots = slots_ + thread_ / kLanes * kLanes;
  switch (warp->meeting.operation) {
    case Operation::kSyncWarp:
      ++warp->barriers;
      return;
    case Operation::kShuffle:
      return ShuffleLanes(slots);
    case Operation::kBallot:
      return BallotLanes(slots);
    case Operation::kLoadMatrix:
      return CompleteLoadMatrix(warp, false);
    case Operation::kLoadMatrixTransposed:
      return CompleteLoadMatrix(warp, true);
    case Operation::kMultiplyBfloat16:
      return MultiplyFragments(true, slots);
    case Operation::kMultiplyFloat16:
      return MultiplyFragments(false, slots);
    case Operation::kNone:
    case Operation::kSyncBlock:
      return;
  }
}

// Runs of neighbours at the same place together.
std::string BlockMachine::DescribeThreads() const {
  std::string text;
  const auto place = [this](uint32_t t) {
    const bool done = (warps_[t / kLanes].done >> (t % kLanes) & 1) != 0;
    if (done) return std::string(" returned");
    return std::string(" at ") + NameOf(places_[t].operation) + " (" + AsText(places_[t].site) +
           ")";
  };
  for (uint32_t t = 0; t < work_.threads;) {
    const std::string where = place(t);
    uint32_t end = t + 1;
    while (end < work_.threads && place(end) == where) ++end;
    text += (t == 0 ? "" : ", ") + std::to_string(t);
    if (end > t + 1) text += " to " + std::to_string(end - 1);
    text += where;
    t = end;
  }
  return text;
}

void BlockMachine::FailDivergent() {
  uint32_t waiting = 0;
  while ((warps_[waiting / kLanes].done >> (waiting % kLanes) & 1) != 0) ++waiting;
  description_ = DescribeThreads();
  Fail(waiting, places_[waiting].site, "waits in vain; threads %s", description_.c_str());
}

void BlockMachine::Report(uint32_t thread, Site site, const char* what) {
  report_->problem = ShortName(work_.kernel) + ", block (" + std::to_string(block_x_) + ", " +
                     std::to_string(block_y_) + "), thread " + std::to_string(thread) + " (warp " +
                     std::to_string(thread / kLanes) + ", lane " + std::to_string(thread % kLanes) +
                     "), " + AsText(site) + ": " + what;
}

void BlockMachine::Fail(uint32_t thread, Site site, const char* format, ...) {
  char text[kTextBytesMax];
  va_list values;
  va_start(values, format);
  std::vsnprintf(text, sizeof(text), format, values);
  va_end(values);
  Report(thread, site, text);
  gave_up_ = true;
  fibers_[thread_].SwitchTo(&scheduler_);
  __builtin_unreachable();
}

}  // namespace cairn::simt::emulated
