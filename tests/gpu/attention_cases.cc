// Attention against the float64 reference on the host, over batches that take every way through the
// kernels. What no query sees, and results before a launch, are NaN.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/gpu/attention_check.h"
#include "tests/gpu/cases.h"
#include "tests/gpu/numbers.h"

namespace cairn::gpu_check {
namespace {

using kernels::KvDtype;
using kernels::KvScales;

AttentionSetup SetupOf(KvDtype dtype, uint32_t kv_heads, uint32_t page_tokens, uint32_t dim,
                       uint32_t group) {
  AttentionSetup setup;
  setup.shape.dtype = dtype;
  setup.shape.kv_heads = kv_heads;
  setup.shape.page_tokens = page_tokens;
  setup.shape.key_dim = dim;
  setup.shape.value_dim = dim;
  const bool is_integer = dtype == KvDtype::kInt8 || dtype == KvDtype::kInt4;
  if (is_integer) setup.shape.scales = KvScales::kPerTokenAndHead;
  if (dtype == KvDtype::kFloat8E4m3fn) setup.shape.scales = KvScales::kPerHead;
  setup.query_heads = kv_heads * group;
  return setup;
}

AttentionSpan OneQuery(uint64_t kv_tokens) { return {kv_tokens, {kv_tokens}, 0}; }

Problem CheckAll(GpuRig& rig, std::vector<AttentionSetup> setups) {
  uint64_t seed = 0;
  for (AttentionSetup& setup : setups) {
    setup.seed = ++seed;
    const Problem problem = CheckAttention(rig, setup);
    if (!problem.empty()) return problem;
  }
  return "";
}

Problem EveryDtype(GpuRig& rig) {
  std::vector<AttentionSetup> setups;
  for (const KvDtype dtype : kAllDtypes) {
    for (const KvDtype query : kWideDtypes) {
      AttentionSetup setup = SetupOf(dtype, 2, 16, 128, 4);
      setup.query_dtype = query;
      for (uint64_t tokens : {0, 1, 15, 16, 17, 65}) setup.spans.push_back(OneQuery(tokens));
      if (query == KvDtype::kBfloat16) setup.spans.push_back(OneQuery(1100));
      setups.push_back(setup);
    }
  }
  return CheckAll(rig, setups);
}

Problem EveryGroup(GpuRig& rig) {
  std::vector<AttentionSetup> setups;
  for (uint32_t group : {1, 2, 3, 5, 7, 8, 9, 12, 16, 17, 33, 64}) {
    for (const KvDtype dtype : {KvDtype::kBfloat16, KvDtype::kFloat8E4m3fn}) {
      setups.push_back(SetupOf(dtype, 1, 16, 128, group));
      setups.back().spans = {OneQuery(100), OneQuery(37), OneQuery(600)};
    }
  }
  return CheckAll(rig, setups);
}

Problem EveryHeadSize(GpuRig& rig) {
  std::vector<AttentionSetup> setups;
  for (uint32_t dim : {2, 10, 64, 80, 96, 128, 192, 256, 320}) {
    for (const KvDtype dtype : kAllDtypes) {
      setups.push_back(SetupOf(dtype, 2, 16, dim, 2));
      setups.back().spans = {OneQuery(90)};
      setups.push_back(setups.back());
      setups.back().shape.value_dim = dim == 128 ? 64 : 128;
    }
  }
  return CheckAll(rig, setups);
}

Problem EveryPageSize(GpuRig& rig) {
  std::vector<AttentionSetup> setups;
  for (uint32_t page : {1, 8, 12, 16, 20, 32, 64, 128}) {
    for (const KvDtype dtype : {KvDtype::kBfloat16, KvDtype::kFloat8E4m3fn, KvDtype::kInt4}) {
      setups.push_back(SetupOf(dtype, 2, page, 64, 2));
      setups.back().spans = {OneQuery(page), OneQuery(page + 1), OneQuery(2 * page + 77)};
    }
  }
  return CheckAll(rig, setups);
}

Problem EveryScale(GpuRig& rig) {
  std::vector<AttentionSetup> setups;
  for (const KvDtype dtype : kAllDtypes) {
    for (const KvScales scales : {KvScales::kPerHead, KvScales::kPerTokenAndHead}) {
      for (uint32_t page : {8, 16}) {
        setups.push_back(SetupOf(dtype, 5, page, 64, 2));
        setups.back().shape.scales = scales;
        setups.back().spans = {OneQuery(75)};
      }
    }
  }
  return CheckAll(rig, setups);
}

Problem Latent(GpuRig& rig) {
  std::vector<AttentionSetup> setups;
  for (const KvDtype dtype : kAllDtypes) {
    for (uint32_t heads : {4, 20}) {
      setups.push_back(SetupOf(dtype, 1, 64, 576, heads));
      setups.back().shape.value_dim = 0;
      setups.back().latent_value_dim = 512;
      setups.back().spans = {OneQuery(heads == 4 ? 600 : 130)};
    }
  }
  return CheckAll(rig, setups);
}

Problem WindowsAndCausality(GpuRig& rig) {
  std::vector<AttentionSetup> setups;
  for (uint64_t sinks : {0, 4, 70}) {
    for (float cap : {0.0f, 2.5f}) {
      AttentionSetup setup = SetupOf(KvDtype::kBfloat16, 1, 16, 64, 3);
      setup.window_tokens = 50;
      setup.sink_tokens = sinks;
      setup.logit_soft_cap = cap;
      setup.spans = {
          {30, {30}, 0}, {700, {690, 699, 700}, 0}, {300, {1000}, 0}, {300, {340, 360}, 100}};
      setups.push_back(setup);
    }
  }
  setups.push_back(SetupOf(KvDtype::kFloat8E4m3fn, 2, 16, 128, 6));
  setups.back().spans = {{200, {196, 197, 198, 199}, 0}, {5, {0, 1, 4}, 0}, {64, {9}, 10}};
  return CheckAll(rig, setups);
}

Problem SharedPrefix(GpuRig& rig) {
  std::vector<AttentionSetup> setups;
  for (uint32_t group : {1, 4}) {
    setups.push_back(SetupOf(KvDtype::kBfloat16, 1, 16, 128, group));
    setups.back().spans = {{600, std::vector<uint64_t>(40, 2000), 0}};
  }
  return CheckAll(rig, setups);
}

Problem LargeBatches(GpuRig& rig) {
  const uint64_t scale = rig.is_emulated() ? 1 : 10;
  std::vector<AttentionSetup> setups;
  for (const KvDtype dtype : {KvDtype::kBfloat16, KvDtype::kFloat8E4m3fn}) {
    setups.push_back(SetupOf(dtype, 2, 16, 128, 4));
    for (uint64_t i = 0; i < 8 * scale; ++i) setups.back().spans.push_back(OneQuery(i * 37 % 700));
    setups.push_back(SetupOf(dtype, 1, 16, 128, 8));
    setups.back().spans = {OneQuery(4000 * scale)};
  }
  return CheckAll(rig, setups);
}

}  // namespace

std::vector<GpuCase> AttentionCases() {
  return {{"attention: every dtype", EveryDtype},
          {"attention: every group", EveryGroup, false},
          {"attention: every head size", EveryHeadSize},
          {"attention: every page size", EveryPageSize},
          {"attention: every scale", EveryScale},
          {"attention: latent", Latent},
          {"attention: windows and causality", WindowsAndCausality},
          {"attention: shared prefix", SharedPrefix},
          {"attention: large batches", LargeBatches, false}};
}

}  // namespace cairn::gpu_check
