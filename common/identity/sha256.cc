#include "common/identity/sha256.h"

#include <openssl/sha.h>

#include <cstring>

#include "common/base/check.h"

// SHA256_* take no part in OpenSSL 3's provider look-up, which is what makes them cheap here.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace cairn {
namespace {

constexpr uint32_t kInitialState[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

void StoreBigEndian32(uint8_t* out, uint32_t value) {
  value = __builtin_bswap32(value);
  std::memcpy(out, &value, sizeof(value));
}

void StoreBigEndian64(uint8_t* out, uint64_t value) {
  value = __builtin_bswap64(value);
  std::memcpy(out, &value, sizeof(value));
}

}  // namespace

Sha256Digest Sha256(absl::string_view message) { return Sha256OfPieces({&message, 1}); }

Sha256Digest Sha256OfPieces(absl::Span<const absl::string_view> pieces) {
  SHA256_CTX context;
  Sha256Digest digest;
  CAIRN_CHECK(SHA256_Init(&context) == 1);
  for (absl::string_view piece : pieces) {
    CAIRN_CHECK(SHA256_Update(&context, piece.data(), piece.size()) == 1);
  }
  CAIRN_CHECK(SHA256_Final(digest.data(), &context) == 1);
  return digest;
}

Sha256Digest Sha256InPlace(uint8_t* buffer, size_t message_bytes) {
  const size_t padded_bytes = Sha256PaddedBytes(message_bytes);
  // Always as much as padding can take: a constant size compiles to a few stores.
  std::memset(buffer + message_bytes, 0, kSha256PaddingBytesMax);
  buffer[message_bytes] = 0x80;
  StoreBigEndian64(buffer + padded_bytes - 8, uint64_t{message_bytes} * 8);

  // SHA256_Init would clear the whole context, and SHA256_Final pad once more: whole compressions
  // need neither, and leave the state in `h`.
  SHA256_CTX context;
  std::memcpy(context.h, kInitialState, sizeof(kInitialState));
  context.Nl = 0;
  context.Nh = 0;
  context.num = 0;
  CAIRN_CHECK(SHA256_Update(&context, buffer, padded_bytes) == 1);
  CAIRN_CHECK(context.num == 0);

  Sha256Digest digest;
  for (size_t i = 0; i < 8; ++i) StoreBigEndian32(digest.data() + 4 * i, context.h[i]);
  return digest;
}

}  // namespace cairn
