// How fast block keys are made: a chain of them against bare SHA-256 of as many bytes.
//
// Floor: one reused EVP context over one buffer that takes exactly as many 64-byte compressions as
// the keys do, their padding included. It pays OpenSSL's set-up once where the keys pay theirs each
// time, and it reads its buffer in order: no chain of keys can be faster than that on one core.
#include <openssl/evp.h>

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/identity/block_hasher.h"
#include "common/identity/sha256.h"
#include "tests/bench/ratio.h"
#include "tests/bench/suites.h"

namespace cairn::bench {
namespace {

// The domain string, parent, count, length of extra: what a block's message has besides its tokens.
constexpr size_t kMessageBytesBesideTokens = 14 + 16 + 4 + 4;
// SHA-256 always adds at least this much.
constexpr size_t kPaddingBytesMin = 9;
constexpr size_t kTokensPerRound = 16384;

using EvpContext = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

struct HashFigures {
  double keys_per_second = 0;
  RatioResult ratio;
};

HashFigures MeasureBlocksOf(size_t block_tokens) {
  const size_t keys = kTokensPerRound / block_tokens;
  std::vector<uint32_t> tokens(kTokensPerRound);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<uint32_t>(i * 2654435761u);
  const Sha256BlockHasher sha256;
  const BlockHasher& hasher = sha256;
  BlockKey parent;
  const auto product = [&] {
    for (size_t i = 0; i < keys; ++i) {
      parent = hasher.Block(parent, {tokens.data() + i * block_tokens, block_tokens}, {});
    }
  };

  const size_t padded = Sha256PaddedBytes(kMessageBytesBesideTokens + block_tokens * 4);
  const std::vector<uint8_t> buffer(keys * padded - kPaddingBytesMin, 0x5a);
  CAIRN_CHECK(Sha256PaddedBytes(buffer.size()) == keys * padded);
  EvpContext context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  CAIRN_CHECK(context != nullptr);
  uint8_t digest[32];
  const auto floor = [&] {
    CAIRN_CHECK(EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1);
    CAIRN_CHECK(EVP_DigestUpdate(context.get(), buffer.data(), buffer.size()) == 1);
    CAIRN_CHECK(EVP_DigestFinal_ex(context.get(), digest, nullptr) == 1);
  };

  HashFigures figures;
  figures.ratio = MeasureRatio(product, floor, {});
  figures.keys_per_second = static_cast<double>(keys) / figures.ratio.product_seconds;
  return figures;
}

}  // namespace

absl::Status RunHashSuite(const SuiteOptions&, JsonReport* report) {
  for (size_t block_tokens : {size_t{16}, size_t{512}}) {
    const HashFigures figures = MeasureBlocksOf(block_tokens);
    const auto floor_keys_per_second = figures.keys_per_second / figures.ratio.ratio;
    report->Add(absl::StrCat("keys_per_second_", block_tokens), figures.keys_per_second);
    report->Add(absl::StrCat("floor_keys_per_second_", block_tokens), floor_keys_per_second);
    report->Add(absl::StrCat("ratio_", block_tokens), figures.ratio.ratio);
    report->Add(absl::StrCat("rounds_", block_tokens), figures.ratio.rounds);
  }
  return absl::OkStatus();
}

}  // namespace cairn::bench
