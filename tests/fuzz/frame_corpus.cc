#include "tests/fuzz/frame_corpus.h"

#include "tests/fuzz/frame_decoder_fuzz.h"

namespace cairn::testing {
namespace {

constexpr size_t kSeedBytesMax = 4096;

}  // namespace

std::string RandomFuzzInput(Random& random) {
  for (;;) {
    const bool write = Below(random, 2) == 0;
    const FrameKind kind = write ? FrameKind::kWriteRequest : FrameKind::kGetResponse;
    const std::string message = RandomFrameBytes(kind, random);
    if (message.size() > kSeedBytesMax) continue;
    std::string input(kFuzzPrefixBytes, '\0');
    for (char& byte : input) byte = static_cast<char>(random());
    input[0] = write ? 0 : 1;
    return input + message;
  }
}

}  // namespace cairn::testing
