// Digests against ByteHash64, over every short length and long ones of every kind.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "kernels/byte_hash.h"
#include "tests/gpu/cases.h"

namespace cairn::gpu_check {
namespace {

using kernels::GpuSegment;

// Segments of these lengths one after another, each at a multiple of 64 bytes.
Problem Check(GpuRig& rig, const std::vector<uint64_t>& lengths, uint64_t seed_of_bytes) {
  std::mt19937_64 random(seed_of_bytes);
  std::vector<uint64_t> offsets;
  uint64_t bytes = 0;
  for (const uint64_t length : lengths) {
    offsets.push_back(bytes);
    bytes += (length + 63) / 64 * 64 + 64;
  }
  std::vector<std::byte> data(bytes);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random());
  DeviceArray<std::byte> device_data(&rig, data);

  std::vector<GpuSegment> segments;
  std::vector<uint64_t> expected;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const uint64_t seed = i % 3 == 0 ? 0 : random();
    segments.push_back({device_data.data() + offsets[i], lengths[i], seed});
    expected.push_back(kernels::ByteHash64(&data[offsets[i]], lengths[i], seed));
  }
  DeviceArray<GpuSegment> device_segments(&rig, segments);
  DeviceArray<uint64_t> digests(&rig, segments.size());
  rig.Note(rig.kernels()->DigestSegments(
      {device_segments.data(), segments.size(), nullptr, digests.data(), nullptr}, rig.stream()));
  const std::vector<uint64_t> got = digests.Read();
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == expected[i]) continue;
    rig.Note("the digest of " + std::to_string(lengths[i]) + " bytes with seed " +
             std::to_string(segments[i].seed) + " is not ByteHash64's");
    break;
  }
  return rig.TakeProblem();
}

Problem EveryShortLength(GpuRig& rig) {
  std::vector<uint64_t> lengths;
  for (uint64_t length = 0; length <= 330; ++length) lengths.push_back(length);
  return Check(rig, lengths, 1);
}

// Around blocks of 1 KiB and runs of eight of them.
Problem LongLengths(GpuRig& rig) {
  std::vector<uint64_t> lengths;
  for (const uint64_t whole : {1024, 2048, 7168, 8192, 9216, 16384, 24576}) {
    for (const int64_t more : {-65, -64, -63, -1, 0, 1, 63, 64, 65, 320, 959}) {
      lengths.push_back(static_cast<uint64_t>(static_cast<int64_t>(whole) + more));
    }
  }
  return Check(rig, lengths, 2);
}

Problem SegmentsOfLayers(GpuRig& rig) {
  return Check(rig, {65536, 65536, 4096, 131072, 65536 + 64, 36864, 65536}, 3);
}

// Fewer on the device than the launch is for, and one that does not begin at 16 bytes.
Problem CountedOnTheDevice(GpuRig& rig) {
  const std::vector<std::byte> data(1024, std::byte{7});
  DeviceArray<std::byte> device_data(&rig, data);
  const std::vector<GpuSegment> segments = {{device_data.data(), 512, 1},
                                            {device_data.data() + 8, 512, 1},
                                            {device_data.data(), 64, 2},
                                            {device_data.data(), 64, 3}};
  DeviceArray<GpuSegment> device_segments(&rig, segments);
  DeviceArray<uint64_t> count(&rig, std::vector<uint64_t>{3});
  DeviceArray<uint64_t> digests(&rig, std::vector<uint64_t>(4, 11));
  DeviceArray<uint32_t> refused(&rig, std::vector<uint32_t>{0});
  rig.Note(rig.kernels()->DigestSegments(
      {device_segments.data(), 4, count.data(), digests.data(), refused.data()}, rig.stream()));
  const std::vector<uint64_t> expected = {kernels::ByteHash64(data.data(), 512, 1), 11,
                                          kernels::ByteHash64(data.data(), 64, 2), 11};
  if (digests.Read() != expected) rig.Note("digests beyond the count, or of a refused segment");
  if (refused.Read()[0] != 1) rig.Note("the segment that is not aligned was not counted");
  return rig.TakeProblem();
}

}  // namespace

std::vector<GpuCase> DigestCases() {
  return {{"digest: every short length", EveryShortLength},
          {"digest: long lengths", LongLengths},
          {"digest: segments of layers", SegmentsOfLayers, false},
          {"digest: counted on the device", CountedOnTheDevice}};
}

}  // namespace cairn::gpu_check
