// The primitives do what they say, in every lane order: each kernel writes what one primitive gave
// to each thread, and the test knows by itself what that must be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

#include "kernels/simt/simt.h"
#include "tests/kernels/simt_rig.h"

namespace cairn::kernels {
namespace {

using simt::AllOrders;
using simt::DeviceArray;
using simt::SimtRig;

constexpr uint32_t kThreads = 128;

// A kernel whose threads each store what Op::Of(params) gives, one word or more.
template <class Op>
struct StoreKernel {
  struct Params {
    const uint32_t* in;
    uint32_t* out;
  };
  static constexpr uint32_t kThreads = 128;
  static constexpr uint32_t kBlocksPerProcessor = 1;
  static void Run(const Params& params) {
    const uint32_t block = simt::BlockY() * simt::GridX() + simt::BlockX();
    simt::StoreGlobal(params.out + block * kThreads + simt::Thread(), Op::Of(params.in));
  }
};

// What each thread of one block got, in every order the same.
template <class Op>
std::vector<uint32_t> RunOp(const std::vector<uint32_t>& in, uint32_t blocks_x = 1,
                            uint32_t blocks_y = 1, uint32_t shared_bytes = 4096) {
  std::vector<std::vector<uint32_t>> results;
  for (const auto& order : AllOrders()) {
    SimtRig rig(order);
    DeviceArray<uint32_t> from(rig.registry(), in);
    DeviceArray<uint32_t> to(rig.registry(), uint64_t{blocks_x} * blocks_y * kThreads);
    EXPECT_EQ(
        rig.Run<StoreKernel<Op>>({blocks_x, blocks_y, shared_bytes}, {from.data(), to.data()}), "");
    results.push_back(to.values());
  }
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
  return results[0];
}

std::vector<uint32_t> Numbers(uint32_t count) {
  std::vector<uint32_t> numbers(count);
  for (uint32_t i = 0; i < count; ++i) numbers[i] = i * 2654435761u;
  return numbers;
}

struct WhereOp {
  static uint32_t Of(const uint32_t*) {
    return simt::BlockX() << 24 | simt::BlockY() << 16 | simt::Warp() << 8 | simt::Lane();
  }
};

TEST(SimtPrimitives, ThreadsKnowWhereTheyAre) {
  const std::vector<uint32_t> where = RunOp<WhereOp>({0}, 3, 2);
  ASSERT_EQ(where.size(), 6 * kThreads);
  for (uint32_t i = 0; i < where.size(); ++i) {
    const uint32_t block = i / kThreads;
    EXPECT_EQ(where[i], block % 3 << 24 | block / 3 << 16 | i % kThreads / 32 << 8 | i % 32);
  }
}

struct ShuffleOp {
  static uint32_t Of(const uint32_t* in) {
    const uint32_t mine = simt::LoadGlobal(in + simt::Thread());
    const uint32_t other = simt::ShuffleXor(mine, 5);
    return other ^ simt::ShuffleFrom(other, simt::Lane() + 1);
  }
};

TEST(SimtPrimitives, ShufflesTakeFromTheirOwnWarp) {
  const std::vector<uint32_t> in = Numbers(kThreads);
  const std::vector<uint32_t> got = RunOp<ShuffleOp>(in);
  for (uint32_t t = 0; t < kThreads; ++t) {
    const uint32_t next = t / 32 * 32 + (t + 1) % 32;
    EXPECT_EQ(got[t], in[t ^ 5] ^ in[next ^ 5]) << t;
  }
}

struct WideShuffleOp {
  static uint32_t Of(const uint32_t* in) {
    simt::Bytes16 mine = {};
    for (uint32_t i = 0; i < 4; ++i) mine.word[i] = simt::LoadGlobal(in + simt::Thread()) + i;
    const simt::Bytes16 other = simt::ShuffleXor(mine, 31);
    const uint16_t half = simt::ShuffleFrom(static_cast<uint16_t>(mine.word[0]), 3);
    return other.word[0] + 2 * other.word[1] + 4 * other.word[2] + 8 * other.word[3] + half;
  }
};

TEST(SimtPrimitives, ShufflesOfOtherSizes) {
  const std::vector<uint32_t> in = Numbers(kThreads);
  const std::vector<uint32_t> got = RunOp<WideShuffleOp>(in);
  for (uint32_t t = 0; t < kThreads; ++t) {
    const uint32_t first = in[t ^ 31];
    const uint32_t half = in[t / 32 * 32 + 3] & 0xffff;
    EXPECT_EQ(got[t], first + 2 * (first + 1) + 4 * (first + 2) + 8 * (first + 3) + half);
  }
}

struct VoteOp {
  static uint32_t Of(const uint32_t* in) {
    const uint32_t mine = simt::LoadGlobal(in + simt::Thread());
    return simt::Ballot(mine % 3 == 0) + simt::CountOnes(mine) + simt::WarpMax(mine, 8) +
           simt::WarpSum(mine);
  }
};

TEST(SimtPrimitives, BallotsMaximaAndSums) {
  const std::vector<uint32_t> in = Numbers(kThreads);
  const std::vector<uint32_t> got = RunOp<VoteOp>(in);
  for (uint32_t t = 0; t < kThreads; ++t) {
    uint32_t votes = 0, most = 0, sum = 0;
    for (uint32_t l = 0; l < 32; ++l) {
      votes |= uint32_t{in[t / 32 * 32 + l] % 3 == 0} << l;
      sum += in[t / 32 * 32 + l];
    }
    for (uint32_t l = 0; l < 8; ++l) most = std::max(most, in[t / 8 * 8 + l]);
    const uint32_t ones = static_cast<uint32_t>(__builtin_popcount(in[t]));
    EXPECT_EQ(got[t], votes + ones + most + sum) << t;
  }
}

// Each thread reads what the thread across the block wrote.
struct ExchangeOp {
  static uint32_t Of(const uint32_t* in) {
    simt::StoreShared(simt::Thread() * 4, simt::LoadGlobal(in + simt::Thread()));
    simt::SyncBlock();
    return simt::LoadShared<uint32_t>((kThreads - 1 - simt::Thread()) * 4);
  }
};

TEST(SimtPrimitives, SharedMemoryCarriesWordsAcrossTheBlock) {
  const std::vector<uint32_t> in = Numbers(kThreads);
  const std::vector<uint32_t> got = RunOp<ExchangeOp>(in, 2);
  for (uint32_t t = 0; t < 2 * kThreads; ++t) EXPECT_EQ(got[t], in[kThreads - 1 - t % kThreads]);
}

// 16 bytes a thread, of which the last thread of each warp has only 4; read by a neighbour.
struct CopyOp {
  static uint32_t Of(const uint32_t* in) {
    const uint32_t t = simt::Thread();
    simt::CopyAsync16(t * 16, in + t * 4, simt::Lane() == 31 ? 4 : 16);
    simt::CopyAsyncCommit();
    simt::CopyAsyncWait<0>();
    simt::SyncWarp();
    const simt::Bytes16 got = simt::LoadShared<simt::Bytes16>((t ^ 1) * 16);
    return got.word[0] + got.word[1] + got.word[2] + got.word[3];
  }
};

TEST(SimtPrimitives, AsynchronousCopiesLandAndFillUpWithZeros) {
  const std::vector<uint32_t> in = Numbers(4 * kThreads);
  const std::vector<uint32_t> got = RunOp<CopyOp>(in);
  for (uint32_t t = 0; t < kThreads; ++t) {
    const uint32_t* const from = &in[(t ^ 1) * 4];
    const uint32_t rest = (t ^ 1) % 32 == 31 ? 0 : from[1] + from[2] + from[3];
    EXPECT_EQ(got[t], from[0] + rest) << t;
  }
}

// Two groups; the first is read while the second is under way.
struct TwoGroupsOp {
  static uint32_t Of(const uint32_t* in) {
    const uint32_t t = simt::Thread();
    for (uint32_t i = 0; i < 2; ++i) {
      simt::CopyAsync16((i * kThreads + t) * 16, in + (i * kThreads + t) * 4, 16,
                        simt::EvictFirst());
      simt::CopyAsyncCommit();
    }
    simt::CopyAsyncWait<1>();
    const uint32_t first = simt::LoadShared<uint32_t>(t * 16);
    simt::CopyAsyncWait<0>();
    return first - simt::LoadShared<uint32_t>((kThreads + t) * 16);
  }
};

TEST(SimtPrimitives, GroupsOfCopiesLandInOrder) {
  const std::vector<uint32_t> in = Numbers(8 * kThreads);
  const std::vector<uint32_t> got = RunOp<TwoGroupsOp>(in);
  for (uint32_t t = 0; t < kThreads; ++t) EXPECT_EQ(got[t], in[t * 4] - in[(kThreads + t) * 4]);
}

// The last of four blocks adds up what all of them wrote.
struct LastBlockKernel {
  struct Params {
    uint32_t* parts;
    uint32_t* counter;
    uint32_t* out;
  };
  static constexpr uint32_t kThreads = 64;
  static constexpr uint32_t kBlocksPerProcessor = 1;
  static void Run(const Params& params) {
    const uint32_t t = simt::Thread();
    simt::StoreGlobal(params.parts + simt::BlockX() * kThreads + t, simt::BlockX() * 1000 + t);
    simt::SyncBlock();
    if (t == 0) {
      simt::ThreadFence();
      simt::StoreShared<uint32_t>(0, simt::AtomicAdd(params.counter, 1));
    }
    simt::SyncBlock();
    if (simt::LoadShared<uint32_t>(0) != simt::GridX() - 1) return;
    uint32_t sum = 0;
    for (uint32_t b = 0; b < simt::GridX(); ++b) {
      sum += simt::LoadGlobal(params.parts + b * kThreads + (kThreads - 1 - t));
    }
    simt::StoreGlobal(params.out + t, sum);
  }
};

TEST(SimtPrimitives, TheLastBlockSeesWhatAllReleased) {
  for (const auto& order : AllOrders()) {
    SimtRig rig(order);
    DeviceArray<uint32_t> parts(rig.registry(), 4 * 64), out(rig.registry(), 64);
    DeviceArray<uint32_t> counter(rig.registry(), std::vector<uint32_t>{0});
    ASSERT_EQ(rig.Run<LastBlockKernel>({4, 1, 4}, {parts.data(), counter.data(), out.data()}), "");
    for (uint32_t t = 0; t < 64; ++t) EXPECT_EQ(out.values()[t], 6000 + 4 * (63 - t));
  }
}

struct CountKernel {
  using Params = uint32_t*;
  static constexpr uint32_t kThreads = 64;
  static constexpr uint32_t kBlocksPerProcessor = 1;
  static void Run(const Params& counter) {
    simt::SyncBlock();
    simt::AtomicAdd(counter, 1);
  }
};

// One executor for all threads, and one for each: fibers go from one OS thread to another.
TEST(SimtPrimitives, LaunchesOfSeveralThreads) {
  constexpr uint32_t kThreadCount = 3;
  SimtRig shared;
  DeviceArray<uint32_t> counter(shared.registry(), std::vector<uint32_t>{0});
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreadCount; ++i) {
    threads.emplace_back([&] {
      SimtRig own;
      DeviceArray<uint32_t> own_counter(own.registry(), std::vector<uint32_t>{0});
      for (uint32_t launch = 0; launch < 20; ++launch) {
        EXPECT_EQ(shared.Run<CountKernel>({}, counter.data()), "");
        EXPECT_EQ(own.Run<CountKernel>({}, own_counter.data()), "");
      }
      EXPECT_EQ(own_counter.values()[0], 20u * 64);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter.values()[0], kThreadCount * 20 * 64);
  EXPECT_EQ(shared.TakeReport().launches, kThreadCount * 20);
}

TEST(SimtPrimitives, NothingIsLaunchedWithoutBlocks) {
  SimtRig rig;
  EXPECT_EQ(rig.Run<LastBlockKernel>({0, 1, 4}, {}), "");
  EXPECT_EQ(rig.TakeReport().launches, 0u);
}

TEST(SimtPrimitives, CountsWhatWasMoved) {
  SimtRig rig;
  DeviceArray<uint32_t> in(rig.registry(), Numbers(4 * kThreads));
  DeviceArray<uint32_t> out(rig.registry(), kThreads);
  ASSERT_EQ(rig.Run<StoreKernel<CopyOp>>({1, 1, 4096}, {in.data(), out.data()}), "");
  const simt::emulated::LaunchReport report = rig.TakeReport();
  EXPECT_EQ(report.launches, 1u);
  EXPECT_EQ(report.blocks, 1u);
  EXPECT_EQ(report.async_copies, kThreads);
  EXPECT_EQ(report.global_loaded_bytes, kThreads * 16 - 4 * 12);
  EXPECT_EQ(report.global_stored_bytes, kThreads * 4);
  EXPECT_EQ(rig.TakeReport().launches, 0u);
}

// Each lane stores 16 bytes and gives them as a row of a matrix, `stride` apart.
struct BankKernel {
  struct Params {
    uint32_t stride;
  };
  static constexpr uint32_t kThreads = 32;
  static constexpr uint32_t kBlocksPerProcessor = 1;
  static void Run(const Params& params) {
    const uint32_t at = simt::Lane() * params.stride;
    simt::StoreShared(at, simt::Bytes16{{simt::Lane(), 0, 0, 0}});
    simt::SyncWarp();
    simt::LoadMatrix4(at);
  }
};

TEST(SimtPrimitives, CountsBankConflicts) {
  SimtRig rig;
  ASSERT_EQ(rig.Run<BankKernel>({1, 1, 32 * 128}, {16}), "");
  simt::emulated::LaunchReport report = rig.TakeReport();
  EXPECT_EQ(report.wide_bank_conflicts, 0u);
  EXPECT_EQ(report.matrix_bank_conflicts, 0u);
  // Rows of 64 bytes: every second one is in the same banks.
  ASSERT_EQ(rig.Run<BankKernel>({1, 1, 32 * 128}, {64}), "");
  report = rig.TakeReport();
  EXPECT_EQ(report.wide_bank_conflicts, 4u * 3);
  EXPECT_EQ(report.matrix_bank_conflicts, 4u * 3);
  ASSERT_EQ(rig.Run<BankKernel>({1, 1, 32 * 128}, {128}), "");
  report = rig.TakeReport();
  EXPECT_EQ(report.wide_bank_conflicts, 4u * 7);
  EXPECT_EQ(report.matrix_bank_conflicts, 4u * 7);
}

TEST(SimtPrimitives, Numbers) {
  EXPECT_EQ(simt::Exp2(-simt::Infinity()), 0);
  EXPECT_EQ(simt::Exp2(-140), 0);  // Subnormal.
  EXPECT_EQ(simt::Exp2(3), 8);
  EXPECT_EQ(simt::Log2(8), 3);
  EXPECT_EQ(simt::RoundToEven(2.5f), 2);
  EXPECT_EQ(simt::Max(NAN, 1), 1);
  EXPECT_EQ(simt::HighProduct(uint64_t{1} << 63, 6), 3u);
  EXPECT_EQ(simt::BytePermute(0x33221100u, 0x77665544u, 0x7041u), 0x77004411u);
}

}  // namespace
}  // namespace cairn::kernels
