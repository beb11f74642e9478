// TuneAllocator: sets up glibc's malloc for a server that moves megabytes for a thousand
// connections.
//
// Call it first thing in main, before any thread. What it trades: messages of up to 1 MiB are
// served from the heap without a page fault for each, and what the heap keeps for that after a
// burst is bounded by AllocatorRetainedMax(), a term of the memory sum. Memory that is in use is
// not its business; fragmentation within the heaps comes on top.
#pragma once

#include "common/server/byte_size.h"

namespace cairn {

struct AllocatorTuning {
  // Heaps that threads share. glibc's default of 8 a core keeps the free memory of each for itself:
  // on a large machine that adds up to more than the in-flight budget.
  int arenas_max = 4;
  // From this size on, an allocation is its own mapping and goes back to the kernel when freed.
  // Above gRPC's slices, our messages (1 MiB) and the copies of a block of 2 MiB that RocksDB makes
  // for each write, below big tables. Setting it also ends glibc's own raising of it to 32 MiB,
  // after which freed megabytes stay in the heap.
  ByteSize mmap_threshold = ByteSize::MiB(8);
  // Free memory that each heap keeps at its top instead of giving it back and faulting it in again.
  ByteSize trim_threshold = ByteSize::MiB(16);
  // What a heap grows by beyond what was asked for: fewer system calls in a burst.
  ByteSize top_pad = ByteSize::MiB(1);
};

// False when the allocator refuses a setting, as those of sanitizers do: the program runs on then.
bool TuneAllocator(const AllocatorTuning& tuning = {});

// What all heaps together may keep at their tops when nothing is in use.
constexpr ByteSize AllocatorRetainedMax(const AllocatorTuning& tuning = {}) {
  return ByteSize(static_cast<uint64_t>(tuning.arenas_max) *
                  (tuning.trim_threshold.bytes() + tuning.top_pad.bytes()));
}

}  // namespace cairn
