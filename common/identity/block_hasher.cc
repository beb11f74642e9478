#include "common/identity/block_hasher.h"

#include <bit>
#include <cstring>

#include "common/base/check.h"
#include "common/identity/sha256.h"

namespace cairn {
namespace {

constexpr absl::string_view kBlockDomain = "cairn/block/v1";
constexpr absl::string_view kExternalDomain = "cairn/external/v1";

// Messages up to this are assembled on the stack and hashed where they lie: blocks of up to about a
// thousand tokens.
constexpr size_t kStackBytes = 4352;

static_assert(std::endian::native == std::endian::little,
              "tokens are hashed as they lie in memory");

uint8_t* Put(uint8_t* out, const void* bytes, size_t size) {
  if (size != 0) std::memcpy(out, bytes, size);
  return out + size;
}

uint8_t* PutU32(uint8_t* out, size_t value) {
  CAIRN_CHECK(value <= UINT32_MAX);
  const auto narrow = static_cast<uint32_t>(value);
  return Put(out, &narrow, sizeof(narrow));
}

absl::string_view View(const void* bytes, size_t size) {
  return {static_cast<const char*>(bytes), size};
}

BlockKey First16(const Sha256Digest& digest) {
  BlockKey key;
  std::memcpy(key.bytes.data(), digest.data(), kKeyBytes);
  return key;
}

}  // namespace

BlockKey Sha256BlockHasher::Block(const BlockKey& parent, absl::Span<const uint32_t> tokens,
                                  absl::string_view extra) const {
  constexpr size_t kHeadBytes = kBlockDomain.size() + kKeyBytes + 4;
  const size_t tokens_bytes = tokens.size() * sizeof(uint32_t);
  const size_t message_bytes = kHeadBytes + tokens_bytes + 4 + extra.size();

  uint8_t buffer[kStackBytes];
  uint8_t* end = Put(buffer, kBlockDomain.data(), kBlockDomain.size());
  end = Put(end, parent.bytes.data(), kKeyBytes);
  end = PutU32(end, tokens.size());
  if (message_bytes + kSha256PaddingBytesMax <= kStackBytes) {
    end = Put(end, tokens.data(), tokens_bytes);
    end = PutU32(end, extra.size());
    end = Put(end, extra.data(), extra.size());
    CAIRN_CHECK(static_cast<size_t>(end - buffer) == message_bytes);
    return First16(Sha256InPlace(buffer, message_bytes));
  }
  uint8_t extra_length[4];
  PutU32(extra_length, extra.size());
  return First16(Sha256OfPieces(
      {View(buffer, kHeadBytes), View(tokens.data(), tokens_bytes), View(extra_length, 4), extra}));
}

BlockKey Sha256BlockHasher::External(const BlockKey& root, absl::string_view id) const {
  uint8_t id_length[4];
  PutU32(id_length, id.size());
  return First16(Sha256OfPieces({kExternalDomain, root.view(), View(id_length, 4), id}));
}

}  // namespace cairn
