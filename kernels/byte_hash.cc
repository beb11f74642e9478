#include "kernels/byte_hash.h"

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include <new>
#include <type_traits>

#ifdef CAIRN_XXHASH_DISPATCH
// Its macros would replace the plain names; we call both kinds by name.
#define XXH_DISPATCH_DISABLE_REPLACE
#include <xxh_x86dispatch.h>
#endif

namespace cairn::kernels {
namespace {

static_assert(std::is_trivial_v<XXH3_state_t>);

XXH3_state_t* State(unsigned char* bytes) {
  return std::launder(reinterpret_cast<XXH3_state_t*>(bytes));
}

const XXH3_state_t* State(const unsigned char* bytes) {
  return std::launder(reinterpret_cast<const XXH3_state_t*>(bytes));
}

}  // namespace

uint64_t ByteHash64(const void* data, size_t size, uint64_t seed) {
#ifdef CAIRN_XXHASH_DISPATCH
  return XXH3_64bits_withSeed_dispatch(data, size, seed);
#else
  return XXH3_64bits_withSeed(data, size, seed);
#endif
}

ByteHasher::ByteHasher(uint64_t seed) {
  static_assert(sizeof(XXH3_state_t) == kStateBytes && alignof(XXH3_state_t) <= 64);
  XXH3_state_t* state = new (state_) XXH3_state_t;
  XXH3_INITSTATE(state);
  XXH3_64bits_reset_withSeed(state, seed);
}

ByteHasher::ByteHasher(const ByteHasher& other) {
  XXH3_copyState(new (state_) XXH3_state_t, State(other.state_));
}

ByteHasher& ByteHasher::operator=(const ByteHasher& other) {
  if (this != &other) XXH3_copyState(State(state_), State(other.state_));
  return *this;
}

void ByteHasher::Reset(uint64_t seed) { XXH3_64bits_reset_withSeed(State(state_), seed); }

void ByteHasher::Update(const void* data, size_t size) {
  if (size == 0) return;
#ifdef CAIRN_XXHASH_DISPATCH
  XXH3_64bits_update_dispatch(State(state_), data, size);
#else
  XXH3_64bits_update(State(state_), data, size);
#endif
}

uint64_t ByteHasher::Digest() const { return XXH3_64bits_digest(State(state_)); }

}  // namespace cairn::kernels
