// RandomSource: where ids that must not be guessed come from.
//
// Thread-safe. SecureRandom asks the operating system's generator through OpenSSL; SeededRandom (in
// tests/testing) makes a whole run repeatable.
#pragma once

#include "common/base/bytes16.h"

namespace cairn {

class RandomSource {
 public:
  virtual ~RandomSource() = default;

  virtual void Fill(uint8_t* out, size_t size) = 0;

  // A fresh 128-bit id of type Id.
  template <typename Id>
  Id New() {
    Id id;
    Fill(id.bytes.data(), id.bytes.size());
    return id;
  }
};

class SecureRandom final : public RandomSource {
 public:
  // Aborts when the system's generator fails: an id that can be guessed is worse than no process.
  void Fill(uint8_t* out, size_t size) override;
};

}  // namespace cairn
