// The memory of BlockMachine: every access is checked, then done.
#include <algorithm>
#include <cstring>

#include "kernels/simt/block_machine.h"

namespace cairn::simt::emulated {
namespace {

constexpr uint32_t kWideBytes = 16;
constexpr uint32_t kGroupsMax = 64;  // Of a thread, not waited for.

}  // namespace

void BlockMachine::CheckGlobal(const void* at, uint32_t bytes, const char* verb, Site site) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(at);
  const auto holds = [&](const MemoryRange& range) {
    return begin >= range.begin && begin < range.end && bytes <= range.end - begin;
  };
  if (ranges_.empty() || !holds(ranges_[last_range_])) {
    const auto next = std::upper_bound(
        ranges_.begin(), ranges_.end(), begin,
        [](uintptr_t value, const MemoryRange& range) { return value < range.begin; });
    if (next == ranges_.begin() || !holds(*(next - 1))) {
      Fail(thread_, site, "%s %u bytes at %p, which no allocation of the device holds", verb, bytes,
           at);
    }
    last_range_ = static_cast<size_t>(next - 1 - ranges_.begin());
  }
}

void BlockMachine::CheckShared(uint32_t thread, uint32_t at, uint32_t bytes, const char* verb,
                               Site site) {
  if (at % bytes != 0) {
    Fail(thread, site, "%s %u bytes at shared offset %u, which is not aligned to them", verb, bytes,
         at);
  }
  if (at > shared_.bytes() || bytes > shared_.bytes() - at) {
    Fail(thread, site, "%s %u bytes at shared offset %u of %u", verb, bytes, at, shared_.bytes());
  }
}

void BlockMachine::CheckFault(uint32_t thread, const AccessFault& fault, uint32_t at,
                              uint32_t bytes, Site site) {
  if (fault.what == nullptr) return;
  if (fault.has_other) {
    Fail(thread, site, "%s thread %u: %u bytes at shared offset %u", fault.what, fault.other, bytes,
         at);
  }
  Fail(thread, site, "%s: %u bytes at shared offset %u", fault.what, bytes, at);
}

void BlockMachine::CheckFault(const GridFault& fault, const void* at, uint32_t bytes, Site site) {
  if (fault.what == nullptr) return;
  const uint64_t place = block_places_[fault.block - launch_first_block_];
  Fail(thread_, site, "%s thread %u of block (%u, %u): %u bytes at %p", fault.what, fault.thread,
       static_cast<uint32_t>(place), static_cast<uint32_t>(place >> 32), bytes, at);
}

void BlockMachine::LoadGlobal(void* to, const void* from, uint32_t bytes, Site site) {
  if (reinterpret_cast<uintptr_t>(from) % bytes != 0) {
    Fail(thread_, site, "loads %u bytes at %p, not aligned to them", bytes, from);
  }
  CheckGlobal(from, bytes, "loads", site);
  CheckFault(global_writes_.Read(Now(thread_), from, bytes), from, bytes, site);
  std::memcpy(to, from, bytes);
  report_->global_loaded_bytes += bytes;
}

void BlockMachine::StoreGlobal(void* to, const void* from, uint32_t bytes, Site site) {
  if (reinterpret_cast<uintptr_t>(to) % bytes != 0) {
    Fail(thread_, site, "stores %u bytes at %p, not aligned to them", bytes, to);
  }
  CheckGlobal(to, bytes, "stores", site);
  CheckFault(global_writes_.Write(Now(thread_), to, bytes), to, bytes, site);
  std::memcpy(to, from, bytes);
  report_->global_stored_bytes += bytes;
}

uint32_t BlockMachine::AtomicAdd(uint32_t* at, uint32_t value, Site site) {
  if (reinterpret_cast<uintptr_t>(at) % sizeof(*at) != 0) {
    Fail(thread_, site, "adds at %p, not aligned to 4 bytes", static_cast<void*>(at));
  }
  CheckGlobal(at, sizeof(*at), "adds to", site);
  global_writes_.Atomic(Now(thread_), at);
  // Launches of several machines may count in one word, as those of several streams do.
  return __atomic_fetch_add(at, value, __ATOMIC_ACQ_REL);
}

void BlockMachine::LoadShared(void* to, uint32_t from, uint32_t bytes, Site site) {
  CheckShared(thread_, from, bytes, "loads", site);
  CheckFault(thread_, shared_.Read(Now(thread_), from, bytes), from, bytes, site);
  if (bytes == kWideBytes) warps_[thread_ / kLanes].banks.Add(thread_ % kLanes, from, site);
  std::memcpy(to, shared_.At(from), bytes);
}

void BlockMachine::StoreShared(uint32_t to, const void* from, uint32_t bytes, Site site) {
  CheckShared(thread_, to, bytes, "stores", site);
  CheckFault(thread_, shared_.Write(Now(thread_), to, bytes), to, bytes, site);
  if (bytes == kWideBytes) warps_[thread_ / kLanes].banks.Add(thread_ % kLanes, to, site);
  std::memcpy(shared_.At(to), from, bytes);
}

void BlockMachine::CopyAsync(uint32_t to, const void* from, uint32_t valid_bytes, Site site) {
  if (valid_bytes > kWideBytes) {
    Fail(thread_, site, "copies %u bytes at once, more than 16", valid_bytes);
  }
  if (valid_bytes > 0) {
    if (reinterpret_cast<uintptr_t>(from) % kWideBytes != 0) {
      Fail(thread_, site, "copies from %p, not aligned to 16 bytes", from);
    }
    CheckGlobal(from, valid_bytes, "copies", site);
    CheckFault(global_writes_.Read(Now(thread_), from, valid_bytes), from, valid_bytes, site);
  }
  CheckShared(thread_, to, kWideBytes, "copies", site);
  CheckFault(thread_, shared_.BeginCopy(Now(thread_), to), to, kWideBytes, site);
  places_[thread_].site = site;
  copies_[thread_].copies.push_back({to, valid_bytes, from});
  report_->global_loaded_bytes += valid_bytes;
  ++report_->async_copies;
}

void BlockMachine::CommitCopies(Site site) {
  CopyQueue& queue = copies_[thread_];
  if (queue.groups.size() == kGroupsMax) {
    Fail(thread_, site, "commits more than %u groups of copies without waiting for any",
         kGroupsMax);
  }
  queue.groups.push_back(static_cast<uint32_t>(queue.copies.size() - queue.committed));
  queue.committed = queue.copies.size();
}

// What was copied is read only now: whoever changed it meanwhile is seen in the results.
void BlockMachine::WaitForCopies(uint32_t groups_left, Site) {
  CopyQueue& queue = copies_[thread_];
  if (queue.groups.size() <= groups_left) return;
  const size_t landing_groups = queue.groups.size() - groups_left;
  size_t landing = 0;
  for (size_t i = 0; i < landing_groups; ++i) landing += queue.groups[i];
  for (size_t i = 0; i < landing; ++i) {
    const AsyncCopy& copy = queue.copies[i];
    std::byte* const to = shared_.At(copy.to);
    if (copy.valid_bytes > 0) std::memcpy(to, copy.from, copy.valid_bytes);
    std::memset(to + copy.valid_bytes, 0, kWideBytes - copy.valid_bytes);
    shared_.LandCopy(Now(thread_), copy.to);
  }
  queue.copies.erase(queue.copies.begin(), queue.copies.begin() + static_cast<ptrdiff_t>(landing));
  queue.groups.erase(queue.groups.begin(),
                     queue.groups.begin() + static_cast<ptrdiff_t>(landing_groups));
  queue.committed -= landing;
}

void BlockMachine::CompleteLoadMatrix(Warp* warp, bool transposed) {
  const uint32_t first = thread_ / kLanes * kLanes;
  const unsigned char* rows[4][8];
  for (uint32_t m = 0; m < 4; ++m) {
    uint32_t offsets[8];
    for (uint32_t r = 0; r < 8; ++r) {
      const uint32_t thread = first + m * 8 + r;
      const uint32_t at = slots_[thread].argument;
      CheckShared(thread, at, kWideBytes, "loads a matrix row of", warp->meeting.site);
      CheckFault(thread, shared_.ReadByWarp(Now(thread), at), at, kWideBytes, warp->meeting.site);
      offsets[r] = at;
      rows[m][r] = reinterpret_cast<const unsigned char*>(shared_.At(at));
    }
    report_->matrix_bank_conflicts += ConflictsOf(offsets, 8);
  }
  TakeFragments(rows, transposed, slots_ + first);
}

}  // namespace cairn::simt::emulated
