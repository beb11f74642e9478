// Kernels that leave their memory, go different ways or meet other blocks without an atomic: the
// emulation must say so. Beside each stands the kernel that keeps the rule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/simt/simt.h"
#include "tests/kernels/simt_broken_kernel.h"
#include "tests/kernels/simt_rig.h"

namespace cairn::kernels {
namespace {

using simt::AllOrders;
using simt::DeviceArray;
using simt::SimtRig;
using testing::HasSubstr;

struct SharedOutOfBounds {
  static void Run(const BrokenParams& params) {
    simt::StoreShared(params.keeps_rule ? 4092 - simt::Thread() * 4 : 4096, 0u);
  }
};

TEST(SimtBrokenAccess, SharedMemoryOutOfBounds) {
  ExpectFound<SharedOutOfBounds>("stores 4 bytes at shared offset 4096 of 4096");
}

struct SharedMisaligned {
  static void Run(const BrokenParams& params) {
    simt::StoreShared(simt::Thread() * 16 + (params.keeps_rule ? 8 : 4), uint64_t{0});
  }
};

TEST(SimtBrokenAccess, SharedMemoryMisaligned) {
  ExpectFound<SharedMisaligned>("which is not aligned");
}

struct MatrixMisaligned {
  static void Run(const BrokenParams& params) {
    simt::StoreShared(simt::Thread() * 16, simt::Bytes16{});
    simt::SyncBlock();
    simt::LoadMatrix4(params.keeps_rule ? 0 : simt::Lane() * 8);
  }
};

TEST(SimtBrokenAccess, MatrixRowMisaligned) {
  ExpectFound<MatrixMisaligned>("loads a matrix row of 16 bytes at shared offset");
}

struct GlobalOutOfBounds {
  static void Run(const BrokenParams& params) {
    simt::LoadGlobal(params.memory + kWords - (params.keeps_rule ? 1 : 0));
  }
};

TEST(SimtBrokenAccess, GlobalLoadOutOfBounds) {
  ExpectFound<GlobalOutOfBounds>("which no allocation of the device holds");
}

struct CopiesMisaligned {
  static void Run(const BrokenParams& params) {
    const uint32_t* const end = params.memory + kWords;
    simt::CopyAsync16(simt::Thread() * 16, end - 2, params.keeps_rule ? 0 : 8);
    simt::CopyAsyncCommit();
    simt::CopyAsyncWait<0>();
    simt::CopyAsync16(simt::Thread() * 16, end - 4, 16);
    simt::CopyAsyncCommit();
    simt::CopyAsyncWait<0>();
  }
};

TEST(SimtBrokenAccess, CopyFromAMisalignedPlace) {
  ExpectFound<CopiesMisaligned>("not aligned to 16 bytes");
}

struct CopiesBeyondTheEnd {
  static void Run(const BrokenParams& params) {
    simt::CopyAsync16(simt::Thread() * 16, params.memory + kWords, params.keeps_rule ? 0 : 1);
    simt::CopyAsyncCommit();
    simt::CopyAsyncWait<0>();
  }
};

TEST(SimtBrokenAccess, CopyFromBeyondTheEnd) {
  ExpectFound<CopiesBeyondTheEnd>("copies 1 bytes at");
}

struct GlobalMisaligned {
  static void Run(const BrokenParams& params) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(params.memory);
    const uint32_t off = params.keeps_rule ? 4 : 2;
    simt::LoadGlobal(reinterpret_cast<const uint32_t*>(bytes + off));
  }
};

TEST(SimtBrokenAccess, GlobalLoadMisaligned) {
  ExpectFound<GlobalMisaligned>("not aligned to them");
}

TEST(SimtBrokenAccess, MemoryThatWasFreedIsNobodys) {
  SimtRig rig;
  auto memory = std::make_unique<DeviceArray<uint32_t>>(rig.registry(), kWords);
  const BrokenParams params = {memory->data(), nullptr, true};
  EXPECT_EQ(rig.Run<BodyKernel<GlobalOutOfBounds>>({}, params), "");
  memory.reset();
  EXPECT_THAT(rig.Run<BodyKernel<GlobalOutOfBounds>>({}, params), HasSubstr("no allocation"));
}

struct DivergentBarrier {
  static void Run(const BrokenParams& params) {
    if (params.keeps_rule || simt::Thread() < 40) simt::SyncBlock();
  }
};

TEST(SimtBrokenAccess, BarrierThatSomeThreadsSkip) {
  ExpectFound<DivergentBarrier>("threads 0 to 39 at SyncBlock");
  ExpectFound<DivergentBarrier>(", 40 to 63 returned");
}

struct BarrierInTwoPlaces {
  static void Run(const BrokenParams& params) {
    if (params.keeps_rule || simt::Warp() == 0) {
      simt::SyncBlock();
    } else {
      simt::SyncBlock();
    }
  }
};

TEST(SimtBrokenAccess, BarrierInTwoPlaces) {
  ExpectFound<BarrierInTwoPlaces>("at another place than thread 0");
}

struct DivergentShuffle {
  static void Run(const BrokenParams& params) {
    if (params.keeps_rule || simt::Lane() != 9) {
      simt::ShuffleXor(simt::Lane(), 1);
    } else {
      simt::SyncWarp();
    }
  }
};

TEST(SimtBrokenAccess, LanesAtDifferentOperations) {
  ExpectFound<DivergentShuffle>("while others of its warp are at");
}

struct ReturnedLane {
  static void Run(const BrokenParams& params) {
    if (!params.keeps_rule && simt::Lane() == 5) return;
    simt::Ballot(true);
  }
};

TEST(SimtBrokenAccess, BallotWithoutALaneThatReturned) {
  ExpectFound<ReturnedLane>(", 5 returned, 6 to 36 at Ballot");
}

struct BarrierOrderMixed {
  static void Run(const BrokenParams& params) {
    // A warp waits for its lanes, which wait for the block.
    if (params.keeps_rule || simt::Thread() % 2 == 0) simt::SyncWarp();
    simt::SyncBlock();
    if (!params.keeps_rule && simt::Thread() % 2 == 1) simt::SyncWarp();
  }
};

TEST(SimtBrokenAccess, WarpAndBlockWaitForEachOther) {
  ExpectFound<BarrierOrderMixed>("waits in vain");
}

struct BlocksShareAWord {
  static void Run(const BrokenParams& params) {
    const uint32_t at = params.keeps_rule ? simt::BlockX() * 64 + simt::Thread() : simt::Thread();
    simt::StoreGlobal(params.memory + at, 1u);
  }
};

TEST(SimtBrokenAccess, TwoBlocksWriteOneWord) {
  ExpectFound<BlocksShareAWord>("writes global memory without order after the write of thread", 2);
}

struct GlobalWithinBlock {
  static void Run(const BrokenParams& params) {
    simt::StoreGlobal(params.memory + simt::Thread(), 1u);
    if (params.keeps_rule) simt::SyncBlock();
    if (simt::Warp() == 1) simt::LoadGlobal(params.memory + simt::Lane());
    simt::SyncBlock();
    if (simt::Warp() == 0) simt::LoadGlobal(params.memory + 32 + simt::Lane());
  }
};

TEST(SimtBrokenAccess, GlobalMemoryWithoutABarrierWithinTheBlock) {
  for (const auto& order : AllOrders()) {
    SimtRig rig(order);
    DeviceArray<uint32_t> memory(rig.registry(), kWords);
    BrokenParams params = {memory.data(), nullptr, true};
    EXPECT_EQ(rig.Run<BodyKernel<GlobalWithinBlock>>({}, params), "");
  }
  // Reads that come first are not remembered: the forward order finds it.
  SimtRig rig;
  DeviceArray<uint32_t> memory(rig.registry(), kWords);
  EXPECT_THAT(rig.Run<BodyKernel<GlobalWithinBlock>>({}, {memory.data(), nullptr, false}),
              HasSubstr("reads global memory without order after the write of thread"));
}

// The last block to count reads what the others wrote: before they had released it, if they count
// before their block has met.
struct ReleasedTooEarly {
  static void Run(const BrokenParams& params) {
    const uint32_t t = simt::Thread();
    simt::StoreGlobal(params.memory + simt::BlockX() * 64 + t, t);
    if (params.keeps_rule) simt::SyncBlock();
    if (t == 0) simt::StoreShared(0, simt::AtomicAdd(params.counter, 1));
    simt::SyncBlock();
    if (simt::LoadShared<uint32_t>(0) != simt::GridX() - 1) return;
    for (uint32_t b = 0; b < simt::GridX(); ++b)
      simt::LoadGlobal(params.memory + b * 64 + (t ^ 33));
  }
};

TEST(SimtBrokenAccess, CountedBeforeTheBlockHadMet) {
  ExpectFound<ReleasedTooEarly>("reads global memory without order after the write of thread", 3);
}

// One thread has acquired what the others released; the rest of its block has not met it since.
struct AcquiredForOneself {
  static void Run(const BrokenParams& params) {
    const uint32_t t = simt::Thread();
    simt::StoreGlobal(params.memory + simt::BlockX() * 64 + t, t);
    simt::SyncBlock();
    if (t == 0) simt::AtomicAdd(params.counter, 1);
    if (params.keeps_rule) simt::SyncBlock();
    if (simt::LoadGlobal(params.counter) + 1 < simt::GridX()) return;
    for (uint32_t b = 0; b < simt::GridX(); ++b) simt::LoadGlobal(params.memory + b * 64 + t);
  }
};

TEST(SimtBrokenAccess, AcquiredByAnotherThreadOfTheBlock) {
  ExpectFound<AcquiredForOneself>("reads global memory without order after the write of thread", 3);
}

struct NeverAcquired {
  static void Run(const BrokenParams& params) {
    const uint32_t t = simt::Thread();
    simt::StoreGlobal(params.memory + simt::BlockX() * 64 + t, t);
    simt::SyncBlock();
    if (t == 0 && params.keeps_rule) simt::AtomicAdd(params.counter, 1);
    simt::SyncBlock();
    simt::LoadGlobal(params.memory + simt::BlockX() * 64 + (t ^ 33));
    const bool is_last = simt::LoadGlobal(params.counter) == simt::GridX() || !params.keeps_rule;
    for (uint32_t b = 0; is_last && b < simt::GridX(); ++b) {
      simt::LoadGlobal(params.memory + b * 64 + t);
    }
  }
};

TEST(SimtBrokenAccess, AnotherBlocksResultsWithoutAnAtomic) {
  ExpectFound<NeverAcquired>("reads global memory without order after the write of thread", 3);
}

TEST(SimtBrokenAccess, ProblemsNameTheKernelTheBlockAndTheThread) {
  SimtRig rig;
  const Problem found = rig.Run<BodyKernel<SharedOutOfBounds>>({1, 2, 4096}, {});
  EXPECT_THAT(found, testing::StartsWith("BodyKernel<SharedOutOfBounds"));
  EXPECT_THAT(found, HasSubstr(">, block (0, 0), thread 0 (warp 0, lane 0), "));
}

TEST(SimtBrokenAccess, GridsThatNoDeviceTakes) {
  SimtRig rig;
  EXPECT_THAT((rig.Run<BodyKernel<SharedOutOfBounds, 48>>({1, 1, 4096}, {})),
              HasSubstr("48 threads a block"));
  EXPECT_THAT((rig.Run<BodyKernel<SharedOutOfBounds>>({1, 65536, 4096}, {})),
              HasSubstr("1 x 65536"));
  EXPECT_THAT((rig.Run<BodyKernel<SharedOutOfBounds>>({1, 1, 1 << 20}, {})),
              HasSubstr("1048576 bytes of shared memory"));
}

}  // namespace
}  // namespace cairn::kernels
