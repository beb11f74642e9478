// Feeds the disk formats' fuzz entry with seeded mutations of sound values: what a compiler without
// libFuzzer can do, and the same in every run. The entry aborts where a parser breaks a promise;
// the tests here only see to it that mutations reach both its answers.
#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <string>

#include "tests/fuzz/disk_format_fuzz.h"

namespace cairn::testing {
namespace {

constexpr uint64_t kSeeds = 40;
constexpr int kMutationsPerSeed = 150;

constexpr DiskFormat kFormats[] = {DiskFormat::kRecord,    DiskFormat::kChunk, DiskFormat::kFooter,
                                   DiskFormat::kNamespace, DiskFormat::kFence, DiskFormat::kDead};

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

TEST(DiskFormatReplay, SoundValuesParse) {
  for (DiskFormat format : kFormats) {
    for (uint64_t number = 0; number < kSeeds; ++number) {
      const std::string value = SoundValue(format, number);
      EXPECT_TRUE(ParsesAs(format, value)) << static_cast<int>(format) << ", " << number;
      Feed(DiskFuzzInput(format, /*mend_checksum=*/true, value));  // Which changes nothing.
    }
  }
}

TEST(DiskFormatReplay, ParsersKeepTheirPromisesUnderMutations) {
  std::mt19937_64 random(5);
  for (DiskFormat format : kFormats) {
    for (uint64_t number = 0; number < kSeeds; ++number) {
      const std::string sound = SoundValue(format, number);
      for (int i = 0; i < kMutationsPerSeed; ++i) {
        std::string value = sound;
        for (uint64_t edits = 1 + random() % 3; edits > 0; --edits) Mutate(&value, random);
        Feed(DiskFuzzInput(format, i % 2 == 0, value));
      }
    }
  }
}

TEST(DiskFormatReplay, ChecksumFindsEveryChangedBitOfAHeadAndADirectory) {
  for (DiskFormat format : {DiskFormat::kRecord, DiskFormat::kChunk, DiskFormat::kFooter}) {
    // A record without payload: RocksDB's checksum covers that.
    const std::string sound = SoundValue(format, 50);
    for (size_t bit = 0; bit < 8 * sound.size(); ++bit) {
      std::string value = sound;
      value[bit / 8] = static_cast<char>(value[bit / 8] ^ (1 << bit % 8));
      EXPECT_FALSE(ParsesAs(format, value)) << static_cast<int>(format) << ", bit " << bit;
    }
  }
}

TEST(DiskFormatReplay, ValueCutShortAnywhereIsDamage) {
  for (DiskFormat format : {DiskFormat::kRecord, DiskFormat::kChunk, DiskFormat::kFooter,
                            DiskFormat::kFence, DiskFormat::kDead}) {
    const std::string sound = SoundValue(format, 3);
    for (size_t size = 0; size < sound.size(); ++size) {
      EXPECT_FALSE(ParsesAs(format, sound.substr(0, size))) << static_cast<int>(format) << size;
    }
  }
}

}  // namespace
}  // namespace cairn::testing
