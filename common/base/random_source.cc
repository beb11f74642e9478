#include "common/base/random_source.h"

#include <openssl/rand.h>

#include "common/base/check.h"

namespace cairn {

void SecureRandom::Fill(uint8_t* out, size_t size) {
  CAIRN_CHECK(RAND_bytes(out, static_cast<int>(size)) == 1);
}

}  // namespace cairn
