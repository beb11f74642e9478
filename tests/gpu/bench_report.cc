#include <algorithm>
#include <cstdio>

#include "tests/gpu/bench.h"

namespace cairn::gpu_check {

void BenchReport::PutTimes(const std::string& key, double gigabytes, double seconds,
                           double floor_seconds, const std::string& note) {
  if (is_emulated_) {
    std::printf("ran    %s\n", key.c_str());
  } else {
    std::printf("%-26s %6.2f GB %9.1f us %7.1f GB/s, floor %7.1f GB/s, ratio %.3f%s\n", key.c_str(),
                gigabytes, seconds * 1e6, gigabytes / seconds, gigabytes / floor_seconds,
                floor_seconds / seconds, note.c_str());
  }
  Put(key + "_ratio", floor_seconds / seconds);
  Put(key + "_gb_s", gigabytes / seconds);
  Put(key + "_floor_gb_s", gigabytes / floor_seconds);
}

double BenchReport::Lowest(const std::string& prefix) const {
  const std::string suffix = "_ratio";
  double lowest = 0;
  for (const auto& [key, value] : values_) {
    if (key.compare(0, prefix.size(), prefix) != 0 || key.size() < suffix.size() ||
        key.compare(key.size() - suffix.size(), suffix.size(), suffix) != 0) {
      continue;
    }
    lowest = lowest == 0 ? value : std::min(lowest, value);
  }
  return lowest;
}

}  // namespace cairn::gpu_check
