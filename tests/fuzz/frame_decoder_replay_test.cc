// Feeds the fuzz entry with seeded mutations of valid frames: what a compiler without libFuzzer can
// do, and the same in every run. The entry aborts where the decoder breaks a promise; the tests
// here only see to it that mutations reach both its answers.
#include <algorithm>
#include <string>

#include "common/wire/frame_decoder.h"
#include "tests/fuzz/frame_corpus.h"
#include "tests/fuzz/frame_decoder_fuzz.h"

namespace cairn::testing {
namespace {

constexpr int kSeeds = 150;
constexpr int kMutationsPerSeed = 150;

// Numbers that sit at the edges of lengths, tags and varints.
constexpr uint8_t kEdges[] = {0x00, 0x01, 0x07, 0x08, 0x0a, 0x10, 0x12, 0x39,
                              0x3a, 0x7a, 0x7f, 0x80, 0x81, 0xfe, 0xff};

size_t Place(const std::string& input, Random& random) { return Below(random, input.size()); }

// One random edit anywhere, mostly in the head of the message, where the fields are.
void Mutate(std::string* input, Random& random) {
  if (input->empty()) input->push_back('\0');
  size_t at = Place(*input, random);
  if (Below(random, 2) == 0) at = std::min(at, static_cast<size_t>(Below(random, 80)));
  const size_t size = std::min(input->size() - at, static_cast<size_t>(Below(random, 20)));
  const char edge = static_cast<char>(kEdges[Below(random, std::size(kEdges))]);
  switch (Below(random, 6)) {
    case 0:
      (*input)[at] = static_cast<char>((*input)[at] ^ (1 << Below(random, 8)));
      break;
    case 1:
      (*input)[at] = edge;
      break;
    case 2:
      input->insert(at, 1 + Below(random, 11), edge);
      break;
    case 3:
      input->erase(at, size);
      break;
    case 4:
      input->insert(Place(*input, random), input->substr(at, size));
      break;
    default:
      input->resize(at);
      break;
  }
}

void Feed(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

bool Decodes(const std::string& input) {
  const FrameKind kind = input[0] == 0 ? FrameKind::kWriteRequest : FrameKind::kGetResponse;
  Random random(1);
  return DecodeFrame(kind, Scatter(absl::string_view(input).substr(kFuzzPrefixBytes), random)).ok();
}

TEST(FrameDecoderReplay, SeedsAreValidFrames) {
  Random random(41);
  for (int i = 0; i < kSeeds; ++i) {
    const std::string input = RandomFuzzInput(random);
    EXPECT_TRUE(Decodes(input));
    Feed(input);
  }
}

TEST(FrameDecoderReplay, KeepsItsPromisesUnderMutations) {
  Random random(42);
  int accepted = 0;
  int refused = 0;
  for (int i = 0; i < kSeeds; ++i) {
    const std::string seed = RandomFuzzInput(random);
    for (int k = 0; k < kMutationsPerSeed; ++k) {
      std::string input = seed;
      std::string message = input.substr(kFuzzPrefixBytes);
      for (uint64_t edits = 1 + Below(random, 4); edits > 0; --edits) Mutate(&message, random);
      input.replace(kFuzzPrefixBytes, std::string::npos, message);
      Feed(input);
      ++(Decodes(input) ? accepted : refused);
    }
  }
  EXPECT_GT(accepted, kSeeds * kMutationsPerSeed / 100);
  EXPECT_GT(refused, kSeeds * kMutationsPerSeed / 100);
}

TEST(FrameDecoderReplay, KeepsItsPromisesOnNoise) {
  Random random(43);
  for (int i = 0; i < 20'000; ++i) {
    std::string input(Below(random, 60), '\0');
    for (char& byte : input) {
      byte = static_cast<char>(Below(random, 2) == 0 ? random()
                                                     : kEdges[Below(random, std::size(kEdges))]);
    }
    Feed(input);
  }
}

}  // namespace
}  // namespace cairn::testing
