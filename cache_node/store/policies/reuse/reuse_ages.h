// ReuseAges: ages counted in requests, in bins whose edges rise by the square root of two: what is
// learnt about one age holds for ages near it, and an old block needs no finer clock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace cairn::node {

// Bin b holds the ages from kReuseAgeEdges[b] to below kReuseAgeEdges[b + 1]; the last is open.
inline constexpr size_t kReuseAgeBins = 42;

constexpr std::array<uint64_t, kReuseAgeBins + 1> MakeReuseAgeEdges() {
  // Two edges an octave: 2^k and the whole number next to 2^k * sqrt(2).
  constexpr uint64_t kSqrt2Millionths = 1'414'214;
  std::array<uint64_t, kReuseAgeBins + 1> edges{};
  edges[0] = 0;
  for (size_t i = 1; i <= kReuseAgeBins; ++i) {
    const uint64_t octave = uint64_t{1} << ((i - 1) / 2);
    uint64_t edge = i % 2 == 1 ? octave : (octave * kSqrt2Millionths + 500'000) / 1'000'000;
    if (edge <= edges[i - 1]) edge = edges[i - 1] + 1;
    edges[i] = edge;
  }
  return edges;
}

inline constexpr std::array<uint64_t, kReuseAgeBins + 1> kReuseAgeEdges = MakeReuseAgeEdges();

}  // namespace cairn::node
