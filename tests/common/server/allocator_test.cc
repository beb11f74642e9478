// Tunes this process's allocator, takes and frees much memory in many threads as a burst of
// connections does, and reads what stays resident from /proc/self/statm. Only where the allocator
// is glibc's: those of sanitizers take no settings.
#include "common/server/allocator.h"

#include <unistd.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "gmock/gmock.h"

namespace cairn {
namespace {

uint64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t size_pages = 0, resident_pages = 0;
  statm >> size_pages >> resident_pages;
  return resident_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// Holds `bytes` in slices of 64 KiB, as gRPC reads them, and frees them in the order they came.
void Burst(size_t bytes) {
  constexpr size_t kSliceBytes = 64 << 10;
  std::vector<std::unique_ptr<char[]>> slices;
  for (size_t done = 0; done < bytes; done += kSliceBytes) {
    slices.push_back(std::make_unique<char[]>(kSliceBytes));
    std::memset(slices.back().get(), 1, kSliceBytes);
  }
}

TEST(AllocatorTest, WhatABurstLeavesBehindIsWithinTheBound) {
  ASSERT_TRUE(TuneAllocator());
  const uint64_t before = ResidentBytes();
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) threads.emplace_back([] { Burst(32 << 20); });
  for (std::thread& thread : threads) thread.join();
  // Small chunks that the threads left high in a heap can keep free memory below them, until the
  // next large free; without the bound all 512 MiB may stay.
  constexpr uint64_t kFragmented = AllocatorRetainedMax().bytes();
  EXPECT_LE(ResidentBytes(), before + AllocatorRetainedMax().bytes() + kFragmented);
}

TEST(AllocatorTest, TheBoundIsOfAllHeapsTogether) {
  constexpr AllocatorTuning kTuning = {
      .arenas_max = 3, .trim_threshold = ByteSize::MiB(10), .top_pad = ByteSize::MiB(2)};
  EXPECT_EQ(AllocatorRetainedMax(kTuning), ByteSize::MiB(36));
}

}  // namespace
}  // namespace cairn
