// Kernels that break a rule, or keep it when told to: what tests of the emulation's checks share.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/simt/simt.h"
#include "tests/kernels/simt_rig.h"

namespace cairn::kernels {

inline constexpr uint32_t kWords = 256;

struct BrokenParams {
  uint32_t* memory;  // kWords words.
  uint32_t* counter;
  bool keeps_rule;
};

template <class Body, uint32_t kBlockThreads = 64>
struct BodyKernel {
  using Params = BrokenParams;
  static constexpr uint32_t kThreads = kBlockThreads;
  static constexpr uint32_t kBlocksPerProcessor = 1;
  static void Run(const Params& params) { Body::Run(params); }
};

// Runs the kernel in every order, keeping the rule and breaking it.
template <class Body>
void ExpectFound(const std::string& problem, uint32_t blocks = 1, bool has_counterpart = true) {
  for (const auto& order : simt::AllOrders()) {
    simt::SimtRig rig(order);
    simt::DeviceArray<uint32_t> memory(rig.registry(), std::vector<uint32_t>(kWords, 7));
    simt::DeviceArray<uint32_t> counter(rig.registry(), std::vector<uint32_t>{0});
    BrokenParams params = {memory.data(), counter.data(), false};
    const simt::LaunchShape shape = {blocks, 1, 4096};
    const Problem found = rig.Run<BodyKernel<Body>>(shape, params);
    EXPECT_THAT(found, testing::HasSubstr(problem));
    EXPECT_THAT(found, testing::HasSubstr("_test.cc:"));
    EXPECT_THAT(found, testing::HasSubstr("thread"));
    EXPECT_EQ(rig.TakeReport().problem, found);
    if (!has_counterpart) continue;
    params.keeps_rule = true;
    *counter.data() = 0;
    EXPECT_EQ(rig.Run<BodyKernel<Body>>(shape, params), "");
  }
}

}  // namespace cairn::kernels
