// What launches of the byte kernels refuse on the host: the words say what is wrong, and nothing
// was launched. And that a kernel's own failure comes to whoever asks the device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "kernels/device/emulated_device.h"
#include "kernels/gpu/emulated_kernels.h"
#include "kernels/simt/grid_executor.h"
#include "tests/gpu/gpu_rig.h"

namespace cairn::kernels {
namespace {

using testing::HasSubstr;

class GpuLaunchTest : public testing::Test {
 protected:
  GpuLaunchTest()
      : executor_({}, &registry_),
        device_(EmulatedDevice::Options{}),
        kernels_(&executor_, &device_),
        rig_(&device_, &kernels_, &registry_),
        memory_(&rig_, 4096) {}

  void TearDown() override {
    EXPECT_EQ(executor_.TakeReport().launches, launches_);
    EXPECT_EQ(rig_.TakeProblem(), "");
  }

  KvShape Shape() const {
    KvShape shape;
    shape.kv_heads = 2;
    shape.page_tokens = 4;
    shape.key_dim = 8;
    shape.value_dim = 8;
    return shape;
  }
  GpuAppend Append() {
    GpuAppend append;
    append.batch.shape = Shape();
    append.batch.source_dtype = KvDtype::kBfloat16;
    append.batch.regions = reinterpret_cast<const WritableKvRegion*>(memory_.data());
    append.batch.pages = reinterpret_cast<const KvPage*>(memory_.data());
    append.batch.slots = reinterpret_cast<const int64_t*>(memory_.data());
    append.batch.token_count = 1;
    append.batch.keys = {memory_.data(), 64, 16};
    append.batch.values = {memory_.data(), 64, 16};
    return append;
  }
  GpuQuantize Quantize() {
    GpuQuantize quantize;
    quantize.numbers = memory_.data();
    quantize.codes = memory_.data() + 2048;
    quantize.scales = reinterpret_cast<float*>(memory_.data() + 3072);
    quantize.rows = 2;
    quantize.row_elements = 8;
    return quantize;
  }
  Stream stream() const { return rig_.stream(); }

  simt::emulated::MemoryRegistry registry_;
  simt::emulated::GridExecutor executor_;
  EmulatedDevice device_;
  EmulatedKernels kernels_;
  gpu_check::GpuRig rig_;
  gpu_check::DeviceArray<std::byte> memory_;
  uint64_t launches_ = 0;  // That the test expects.
};

TEST_F(GpuLaunchTest, AppendSaysWhatIsWrong) {
  GpuAppend append = Append();
  append.batch.shape.scales = KvScales::kPerHead;
  EXPECT_THAT(kernels_.Append(append, stream()), HasSubstr("scales one a head"));
  append = Append();
  append.batch.source_dtype = KvDtype::kInt8;
  EXPECT_THAT(kernels_.Append(append, stream()), HasSubstr("source_dtype int8"));
  append = Append();
  append.batch.slots = nullptr;
  EXPECT_THAT(kernels_.Append(append, stream()), HasSubstr("is null"));
  append = Append();
  append.batch.keys.token_stride = 63;
  EXPECT_THAT(kernels_.Append(append, stream()), HasSubstr("multiples of their element"));
  append = Append();
  append.batch.segment_offset = 32;
  EXPECT_THAT(kernels_.Append(append, stream()), HasSubstr("segment_offset 32"));
  append = Append();
  append.batch.token_count = 0;
  EXPECT_EQ(kernels_.Append(append, stream()), "");
}

TEST_F(GpuLaunchTest, QuantizeSaysWhatIsWrong) {
  GpuQuantize quantize = Quantize();
  quantize.source_dtype = KvDtype::kInt4;
  EXPECT_THAT(kernels_.Quantize(quantize, stream()), HasSubstr("numbers of int4"));
  quantize = Quantize();
  quantize.dtype = KvDtype::kInt4;
  quantize.row_elements = 7;
  EXPECT_THAT(kernels_.Quantize(quantize, stream()), HasSubstr("row_elements 7 is odd"));
  quantize = Quantize();
  quantize.scales = nullptr;
  EXPECT_THAT(kernels_.Quantize(quantize, stream()), HasSubstr("scales are null"));
  quantize = Quantize();
  quantize.rows = uint64_t{1} << 60;
  EXPECT_THAT(kernels_.Quantize(quantize, stream()), HasSubstr("more than memory has"));
  quantize = Quantize();
  quantize.numbers += 2;
  EXPECT_THAT(kernels_.Quantize(quantize, stream()), HasSubstr("not aligned"));
  GpuDequantize dequantize;
  dequantize.dtype = static_cast<KvDtype>(9);
  EXPECT_THAT(kernels_.Dequantize(dequantize, stream()), HasSubstr("dtype 9 is not known"));
  quantize = Quantize();
  quantize.rows = 0;
  EXPECT_EQ(kernels_.Quantize(quantize, stream()), "");
}

TEST_F(GpuLaunchTest, BlockCopySaysWhatIsWrong) {
  GpuBlockCopy call;
  call.copy.shape = Shape();
  call.copy.place_count = 1;
  EXPECT_THAT(kernels_.Gather(call, stream()), HasSubstr("tensor is null"));
  call.copy.tensor = MakeEngineTensor(EngineLayout::kBlocksKv, Shape(), 2, 2, 0, memory_.data());
  EXPECT_THAT(kernels_.Scatter(call, stream()), HasSubstr("places or regions is null"));
  call.copy.shape.scales = KvScales::kPerHead;
  EXPECT_THAT(kernels_.Gather(call, stream()), HasSubstr("scales are null"));
}

TEST_F(GpuLaunchTest, DigestSaysWhatIsWrong) {
  EXPECT_THAT(kernels_.DigestSegments({nullptr, 1, nullptr, nullptr, nullptr}, stream()),
              HasSubstr("segments or digests is null"));
  EXPECT_EQ(kernels_.DigestSegments({}, stream()), "");
}

TEST_F(GpuLaunchTest, WhatAKernelDoesWrongFailsTheDevice) {
  GpuQuantize quantize = Quantize();
  quantize.codes = memory_.data() + 4096;
  launches_ = 1;
  rig_.Note(kernels_.Quantize(quantize, stream()));
  rig_.Finish();
  EXPECT_THAT(rig_.TakeProblem(), HasSubstr("which no allocation of the device holds"));
}

}  // namespace
}  // namespace cairn::kernels
