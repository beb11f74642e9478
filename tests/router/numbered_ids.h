// Keys and fingerprints that tests name by a number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/bytes16.h"
#include "common/identity/fingerprint.h"

namespace cairn::router {

// Number `number` in the key's first bytes, so that it is in shard number mod 256 mod N.
inline BlockKey NumberedKey(uint32_t number) {
  BlockKey key;
  for (size_t byte = 0; byte < 4; ++byte)
    key.bytes[byte] = static_cast<uint8_t>(number >> 8 * byte);
  return key;
}

inline std::vector<BlockKey> NumberedKeys(uint32_t first, uint32_t count) {
  std::vector<BlockKey> keys;
  for (uint32_t i = 0; i < count; ++i) keys.push_back(NumberedKey(first + i));
  return keys;
}

inline Fingerprint NumberedFingerprint(uint8_t number) {
  Fingerprint fingerprint;
  fingerprint.bytes.fill(number);
  return fingerprint;
}

}  // namespace cairn::router
