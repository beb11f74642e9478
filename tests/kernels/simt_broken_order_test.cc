// Kernels that touch shared memory in no order, or too early: the emulation must say so, naming the
// thread, the line and what happened, and the next launch must be as if nothing had been. Beside
// each stands the kernel that keeps the rule, so that a check that always complains is found too.
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

struct MissingBlockBarrier {
  static void Run(const BrokenParams& params) {
    const uint32_t t = simt::Thread();
    simt::StoreShared(t * 4, t);
    simt::SyncWarp();
    if (params.keeps_rule) simt::SyncBlock();
    simt::LoadShared<uint32_t>((t ^ 32) * 4);
    simt::SyncBlock();
  }
};

TEST(SimtBrokenOrder, MissingBarrierBetweenWriteAndRead) {
  // Whether the read or the write comes first is the order's: the one finds nothing written yet, or
  // the write of before.
  for (const auto& order : AllOrders()) {
    SimtRig rig(order);
    BrokenParams params = {nullptr, nullptr, false};
    const Problem found = rig.Run<BodyKernel<MissingBlockBarrier>>({1, 1, 4096}, params);
    EXPECT_THAT(found, testing::AnyOf(HasSubstr("without a barrier after the write of thread"),
                                      HasSubstr("that nobody wrote")));
    params.keeps_rule = true;
    EXPECT_EQ(rig.Run<BodyKernel<MissingBlockBarrier>>({1, 1, 4096}, params), "");
  }
}

struct MissingWarpBarrier {
  static void Run(const BrokenParams& params) {
    const uint32_t t = simt::Thread();
    simt::StoreShared(t * 4, t);
    // A shuffle makes lanes wait for each other; it orders no memory.
    simt::ShuffleXor(t, 1);
    if (params.keeps_rule) simt::SyncWarp();
    simt::LoadShared<uint32_t>((t ^ 1) * 4);
  }
};

TEST(SimtBrokenOrder, ShuffleInPlaceOfAWarpBarrier) {
  ExpectFound<MissingWarpBarrier>(
      "reads shared memory without a barrier after the write of thread");
}

struct MatrixTooEarly {
  static void Run(const BrokenParams& params) {
    simt::StoreShared(simt::Thread() * 16, simt::Bytes16{});
    if (params.keeps_rule) simt::SyncWarp();
    simt::LoadMatrix4(simt::Thread() * 16);
  }
};

TEST(SimtBrokenOrder, MatrixReadWithoutAWarpBarrier) {
  ExpectFound<MatrixTooEarly>("without a barrier after the write of thread");
}

struct OverwrittenTooEarly {
  static void Run(const BrokenParams& params) {
    const uint32_t t = simt::Thread();
    simt::StoreShared(t * 4, t);
    simt::SyncBlock();
    simt::LoadShared<uint32_t>((t ^ 32) * 4);
    simt::SyncWarp();
    if (params.keeps_rule) simt::SyncBlock();
    simt::StoreShared(t * 4, t);
  }
};

TEST(SimtBrokenOrder, MissingBarrierBetweenReadAndWrite) {
  for (const auto& order : AllOrders()) {
    SimtRig rig(order);
    BrokenParams params = {nullptr, nullptr, false};
    const Problem found = rig.Run<BodyKernel<OverwrittenTooEarly>>({1, 1, 4096}, params);
    EXPECT_THAT(found, testing::AnyOf(HasSubstr("writes shared memory without a barrier after"),
                                      HasSubstr("reads shared memory without a barrier after")));
    params.keeps_rule = true;
    EXPECT_EQ(rig.Run<BodyKernel<OverwrittenTooEarly>>({1, 1, 4096}, params), "");
  }
}

struct OverwrittenByAnother {
  static void Run(const BrokenParams& params) {
    const uint32_t t = simt::Thread();
    simt::StoreShared(t * 4, t);
    simt::SyncBlock();
    if (simt::Warp() == 0) simt::LoadShared<uint32_t>((t + 32) * 4);
    if (params.keeps_rule) simt::SyncBlock();
    if (simt::Warp() == 1) simt::StoreShared(t * 4, t);
  }
};

TEST(SimtBrokenOrder, WriteThatFollowsAnothersRead) {
  SimtRig rig;  // Forward: the reader comes first.
  EXPECT_THAT(rig.Run<BodyKernel<OverwrittenByAnother>>({1, 1, 4096}, {nullptr, nullptr, false}),
              HasSubstr("writes shared memory without a barrier after the read of"));
  EXPECT_EQ(rig.Run<BodyKernel<OverwrittenByAnother>>({1, 1, 4096}, {nullptr, nullptr, true}), "");
}

struct WrittenTwice {
  static void Run(const BrokenParams& params) {
    const uint32_t at = params.keeps_rule ? simt::Thread() * 4 : 0;
    simt::StoreShared(at, simt::Thread());
  }
};

TEST(SimtBrokenOrder, TwoThreadsWriteOneWord) {
  ExpectFound<WrittenTwice>("writes shared memory without a barrier after the write of thread");
}

struct HalvesOfAWord {
  static void Run(const BrokenParams& params) {
    const uint32_t width = params.keeps_rule ? 2 : 1;
    simt::StoreShared(simt::Thread() * width / 2 * 2, static_cast<uint16_t>(1));
  }
};

TEST(SimtBrokenOrder, NeighboursMayWriteHalvesOfAWordButNotTheSame) {
  ExpectFound<HalvesOfAWord>("2 bytes at shared offset");
}

struct MissingWait {
  static void Run(const BrokenParams& params) {
    const uint32_t t = simt::Thread();
    simt::CopyAsync16(t * 16, params.memory + t * 4, 16);
    simt::CopyAsyncCommit();
    if (params.keeps_rule) simt::CopyAsyncWait<0>();
    simt::LoadShared<uint32_t>(t * 16);
    simt::CopyAsyncWait<0>();
  }
};

TEST(SimtBrokenOrder, ReadBeforeTheCopyWasWaitedFor) {
  ExpectFound<MissingWait>("that an asynchronous copy is under way to");
}

struct WaitsForTheWrongGroup {
  static void Run(const BrokenParams& params) {
    const uint32_t t = simt::Thread();
    simt::CopyAsync16(t * 16, params.memory + t * 4, 16);
    if (params.keeps_rule) simt::CopyAsyncCommit();
    simt::CopyAsyncWait<0>();  // What was not committed is not waited for.
    simt::LoadShared<uint32_t>(t * 16);
  }
};

TEST(SimtBrokenOrder, CopyThatWasNotCommitted) {
  ExpectFound<WaitsForTheWrongGroup>("that an asynchronous copy is under way to");
}

struct WaitsForTooFewGroups {
  static void Run(const BrokenParams& params) {
    const uint32_t t = simt::Thread();
    for (uint32_t i = 0; i < 2; ++i) {
      simt::CopyAsync16((i * 64 + t) * 16, params.memory + t * 4, 16);
      simt::CopyAsyncCommit();
    }
    simt::CopyAsyncWait<1>();
    simt::LoadShared<uint32_t>((params.keeps_rule ? t : 64 + t) * 16);
    simt::CopyAsyncWait<0>();
  }
};

TEST(SimtBrokenOrder, OneGroupMoreIsUnderWay) {
  ExpectFound<WaitsForTooFewGroups>("that an asynchronous copy is under way to");
}

struct ReadsANeighboursCopy {
  static void Run(const BrokenParams& params) {
    const uint32_t t = simt::Thread();
    simt::CopyAsync16(t * 16, params.memory + t * 4, 16);
    simt::CopyAsyncCommit();
    simt::CopyAsyncWait<0>();
    // All have waited, each for its own: that orders nothing between them.
    simt::Ballot(true);
    if (params.keeps_rule) simt::SyncWarp();
    simt::LoadShared<uint32_t>((t ^ 1) * 16);
  }
};

TEST(SimtBrokenOrder, NeighboursCopyWithoutABarrier) {
  ExpectFound<ReadsANeighboursCopy>("without a barrier after the write of thread");
}

struct StageReusedTooEarly {
  static void Run(const BrokenParams& params) {
    const uint32_t t = simt::Thread();
    for (uint32_t i = 0; i < 2; ++i) {
      simt::CopyAsync16(t * 16, params.memory + t * 4, 16);
      simt::CopyAsyncCommit();
      simt::CopyAsyncWait<0>();
      simt::SyncWarp();
      simt::LoadShared<uint32_t>((t ^ 1) * 16);
      if (params.keeps_rule) simt::SyncWarp();
    }
  }
};

TEST(SimtBrokenOrder, StageRefilledUnderAReader) {
  ExpectFound<StageReusedTooEarly>("shared memory without a barrier after the");
}

struct EndsWithCopies {
  static void Run(const BrokenParams& params) {
    simt::CopyAsync16(simt::Thread() * 16, params.memory, 16);
    simt::CopyAsyncCommit();
    if (params.keeps_rule) simt::CopyAsyncWait<0>();
  }
};

TEST(SimtBrokenOrder, EndsWithACopyUnderWay) {
  ExpectFound<EndsWithCopies>("ends with asynchronous copies");
}

struct ReadsUnwritten {
  static void Run(const BrokenParams& params) {
    if (params.keeps_rule) simt::StoreShared(simt::Thread() * 8, uint64_t{0});
    if (!params.keeps_rule) simt::StoreShared(simt::Thread() * 8, uint32_t{0});
    simt::LoadShared<uint64_t>(simt::Thread() * 8);
  }
};

TEST(SimtBrokenOrder, ReadsSharedMemoryThatNobodyWrote) {
  ExpectFound<ReadsUnwritten>("that nobody wrote");
}

TEST(SimtBrokenOrder, WhatABlockWroteIsGoneForTheNext) {
  struct Body {
    static void Run(const BrokenParams&) {
      if (simt::BlockX() == 0) simt::StoreShared(simt::Thread() * 4, 1u);
      if (simt::BlockX() == 1) simt::LoadShared<uint32_t>(simt::Thread() * 4);
    }
  };
  ExpectFound<Body>("that nobody wrote", 2, false);
}

}  // namespace
}  // namespace cairn::kernels
