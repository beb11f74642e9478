// PlainHash64, what digests are held against where there is no xxHash, against xxHash.
#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <vector>

#include "kernels/byte_hash.h"
#include "tests/gpu/plain_hash.h"

namespace cairn::gpu_check {
namespace {

TEST(PlainHash, IsByteHash64AtEveryLength) {
  std::mt19937_64 random(1);
  std::vector<std::byte> data(5000);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random());
  for (size_t bytes = 0; bytes <= data.size(); bytes += bytes < 1200 ? 1 : 61) {
    const uint64_t seed = bytes % 3 == 0 ? 0 : random();
    ASSERT_EQ(PlainHash64(data.data(), bytes, seed), kernels::ByteHash64(data.data(), bytes, seed))
        << bytes;
  }
}

}  // namespace
}  // namespace cairn::gpu_check
