// Feeds the decisions' fuzz entry with seeded mutations of sound files and records: what a compiler
// without libFuzzer can do, and the same in every run. The entry aborts where a promise is broken;
// the tests here only see to it that mutations reach decisions that are read and such that are not.
#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "router/decisions/decision_frames.h"
#include "tests/fuzz/decision_file_fuzz.h"

namespace cairn::testing {
namespace {

constexpr uint32_t kSeeds = 20;
constexpr int kMutationsPerSeed = 60;

// One random edit: a bit, an edge number over one to eight bytes, a cut, a piece taken out or
// doubled.
void Mutate(std::string* value, std::mt19937_64& random) {
  if (value->empty()) value->push_back('\0');
  const size_t at = random() % value->size();
  const size_t size = std::min<size_t>(value->size() - at, 1 + random() % 8);
  switch (random() % 5) {
    case 0:
      (*value)[at] = static_cast<char>((*value)[at] ^ (1 << random() % 8));
      break;
    case 1:
      std::fill_n(value->begin() + static_cast<std::ptrdiff_t>(at), size,
                  random() % 2 == 0 ? '\0' : '\xff');
      break;
    case 2:
      value->resize(at);
      break;
    case 3:
      value->erase(at, size);
      break;
    default:
      value->insert(at, value->substr(at, size));
      break;
  }
}

void Feed(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

TEST(DecisionFileReplay, SoundFilesAndRecordsAreRead) {
  for (uint32_t number = 0; number < kSeeds; ++number) {
    std::string file = SoundDecisionFile(number, 3);
    EXPECT_EQ(DecisionsIn(file), 3u);
    router::AppendDecisionFrame(SoundDecisionRecord(number), file.size(), &file);
    EXPECT_EQ(DecisionsIn(file), 4u);
    Feed(DecisionFuzzInput(DecisionInput::kMendedFile, file));  // Which changes nothing.
  }
}

TEST(DecisionFileReplay, PromisesHoldUnderMutations) {
  std::mt19937_64 random(6);
  size_t read = 0;
  size_t fewer = 0;
  for (uint32_t number = 0; number < kSeeds; ++number) {
    const std::string file = SoundDecisionFile(number, 2);
    const std::string record = SoundDecisionRecord(number);
    for (int i = 0; i < kMutationsPerSeed; ++i) {
      std::string value = file;
      for (uint64_t edits = 1 + random() % 3; edits > 0; --edits) Mutate(&value, random);
      Feed(
          DecisionFuzzInput(i % 2 == 0 ? DecisionInput::kFile : DecisionInput::kMendedFile, value));
      value = record;
      Mutate(&value, random);
      Feed(DecisionFuzzInput(DecisionInput::kRecord, value));
      std::string with = file;
      router::AppendDecisionFrame(value, with.size(), &with);
      (DecisionsIn(with) == 3 ? read : fewer) += 1;
    }
  }
  EXPECT_GT(read, 100u);
  EXPECT_GT(fewer, 100u);
}

}  // namespace
}  // namespace cairn::testing
