// SeededRandom: a RandomSource that repeats itself under one seed. Thread-safe.
#pragma once

#include <random>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/random_source.h"

namespace cairn::testing {

class SeededRandom final : public RandomSource {
 public:
  explicit SeededRandom(uint64_t seed) : generator_(seed) {}

  void Fill(uint8_t* out, size_t size) override {
    absl::MutexLock lock(&mutex_);
    for (size_t i = 0; i < size; ++i) out[i] = static_cast<uint8_t>(generator_());
  }

 private:
  absl::Mutex mutex_;
  std::mt19937_64 generator_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn::testing
