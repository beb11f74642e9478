// The cases of tests/gpu on the emulated device: each in every lane order, with launches as work of
// a stream.
#include <gtest/gtest.h>

#include <cctype>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/device/emulated_device.h"
#include "kernels/gpu/emulated_kernels.h"
#include "kernels/simt/grid_executor.h"
#include "tests/gpu/cases.h"
#include "tests/gpu/gpu_rig.h"
#include "tests/kernels/simt_rig.h"

namespace cairn::gpu_check {
namespace {

using kernels::EmulatedDevice;

class GpuKernelsTest : public testing::TestWithParam<std::tuple<size_t, size_t>> {};

TEST_P(GpuKernelsTest, AsOnTheCpu) {
  const auto [order, index] = GetParam();
  simt::emulated::MemoryRegistry registry;
  simt::emulated::GridExecutor executor(simt::AllOrders()[order], &registry);
  EmulatedDevice device(EmulatedDevice::Options{});
  kernels::EmulatedKernels kernels(&executor, &device);
  GpuRig rig(&device, &kernels, &registry);
  EXPECT_EQ(AllCases()[index].run(rig), "");
  EXPECT_EQ(rig.TakeProblem(), "");
  EXPECT_EQ(executor.TakeReport().problem, "");
}

std::string NameOfTest(const testing::TestParamInfo<std::tuple<size_t, size_t>>& info) {
  constexpr const char* kOrders[] = {"Forward", "Reverse", "Random", "OtherRandom"};
  std::string name = kOrders[std::get<0>(info.param)];
  bool begins_word = true;
  const std::string case_name = AllCases()[std::get<1>(info.param)].name;
  for (const char c : case_name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      name += begins_word ? static_cast<char>(std::toupper(byte)) : c;
    }
    begins_word = std::isalnum(byte) == 0;
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Orders, GpuKernelsTest,
                         testing::Combine(testing::Range(size_t{0}, size_t{4}),
                                          testing::Range(size_t{0}, AllCases().size())),
                         NameOfTest);

}  // namespace
}  // namespace cairn::gpu_check
