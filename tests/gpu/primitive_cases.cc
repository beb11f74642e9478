// Every primitive as the device has it against the portable one: the same probe runs on both, over
// the same words. On the emulated device that compares orders of lanes.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/simt/grid_executor.h"
#include "tests/gpu/cases.h"
#include "tests/gpu/probe_kernel.h"

namespace cairn::gpu_check {
namespace {

constexpr uint32_t kWordsInAll = kProbeBlocks * kProbeThreads * kProbeWords;
constexpr uint32_t kRounds = 4;          // Of other words each.
constexpr uint32_t kFirstFloatWord = 6;  // Of what the probes of conversions write: float32.

Problem RunEmulated(const ProbeParams& params, simt::emulated::MemoryRegistry* registry,
                    simt::emulated::LaneOrder order) {
  simt::emulated::GridExecutor executor({order, 1}, registry);
  simt::LaunchTarget target;
  target.executor = &executor;
  return simt::Launch<kernels::ProbeKernel>(
      target, {kProbeBlocks, 1, kernels::ProbeKernel::kSharedBytes}, params);
}

Problem RunPortable(ProbeKind kind, const std::vector<uint32_t>& in, std::vector<uint32_t>* out) {
  // Copies want their source at multiples of 16 bytes.
  std::vector<simt::Bytes16> aligned(in.size() / 4);
  std::memcpy(aligned.data(), in.data(), in.size() * sizeof(uint32_t));
  simt::emulated::MemoryRegistry registry;
  registry.Add(aligned.data(), in.size() * sizeof(uint32_t));
  registry.Add(out->data(), out->size() * sizeof(uint32_t));
  return RunEmulated({kind, aligned.data()->word, out->data()}, &registry,
                     simt::emulated::LaneOrder::kForward);
}

// The NaNs of two halves are as good as each other.
uint32_t Quiet(uint32_t word, uint32_t exponent) {
  for (const uint32_t shift : {0, 16}) {
    const uint32_t magnitude = word >> shift & 0x7fffu;
    if (magnitude > exponent) word |= 0x7fffu << shift;
  }
  return word;
}

float FloatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

bool Agree(ProbeKind kind, uint32_t word_index, uint32_t got, uint32_t expected) {
  if (got == expected) return true;
  if (kind == ProbeKind::kNearNumbers) {
    return std::fabs(FloatOf(got) - FloatOf(expected)) <= 1e-6f * std::fabs(FloatOf(expected));
  }
  const bool is_decode = kind == ProbeKind::kDecodeFloat16 || kind == ProbeKind::kDecodeBfloat16;
  if (!is_decode) return false;
  if (word_index >= kFirstFloatWord) {
    return std::isnan(FloatOf(got)) && std::isnan(FloatOf(expected));
  }
  const uint32_t exponent = kind == ProbeKind::kDecodeFloat16 ? 0x7c00u : 0x7f80u;
  return Quiet(got, exponent) == Quiet(expected, exponent);
}

Problem CheckProbe(GpuRig& rig, ProbeKind kind, uint32_t round) {
  std::mt19937_64 random(static_cast<uint64_t>(kind) * 100 + round);
  std::vector<uint32_t> in(kWordsInAll);
  for (uint32_t& word : in) word = static_cast<uint32_t>(random());
  // All codes of one byte come, in the place of each.
  for (uint32_t t = 0; t < kProbeBlocks * kProbeThreads; ++t) {
    const uint32_t shift = round % 4 * 8;
    uint32_t& word = in[t * kProbeWords];
    word = (word & ~(0xffu << shift)) | t % 256 << shift;
  }
  std::vector<uint32_t> expected(kWordsInAll);
  Problem problem = RunPortable(kind, in, &expected);
  if (!problem.empty()) return problem;
  DeviceArray<uint32_t> device_in(&rig, in);
  DeviceArray<uint32_t> device_out(&rig, kWordsInAll);
  rig.Note(rig.Probe({kind, device_in.data(), device_out.data()}));
  const std::vector<uint32_t> got = device_out.Read();
  problem = rig.TakeProblem();
  for (uint32_t i = 0; i < kWordsInAll && problem.empty(); ++i) {
    if (Agree(kind, i % kProbeWords, got[i], expected[i])) continue;
    problem = "probe " + std::to_string(static_cast<uint32_t>(kind)) + ", thread " +
              std::to_string(i / kProbeWords) + ", word " + std::to_string(i % kProbeWords) + ": " +
              std::to_string(got[i]) + ", not " + std::to_string(expected[i]);
  }
  return problem;
}

Problem EveryPrimitive(GpuRig& rig) {
  for (uint32_t kind = 0; kind < static_cast<uint32_t>(ProbeKind::kCount); ++kind) {
    for (uint32_t round = 0; round < kRounds; ++round) {
      const Problem problem = CheckProbe(rig, static_cast<ProbeKind>(kind), round);
      if (!problem.empty()) return problem;
    }
  }
  return "";
}

}  // namespace

Problem GpuRig::Probe(const ProbeParams& params) {
  Finish();
  if (probe_ != nullptr) return probe_(params, stream_);
  return RunEmulated(params, registry_, simt::emulated::LaneOrder::kRandom);
}

std::vector<GpuCase> PrimitiveCases() {
  return {{"primitives: as the portable ones", EveryPrimitive}};
}

}  // namespace cairn::gpu_check
