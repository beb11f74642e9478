// write_decision_corpus DIR: writes seed inputs of the decisions' fuzz target into DIR.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "tests/fuzz/decision_file_fuzz.h"

namespace {

constexpr uint32_t kSeeds = 8;

bool Write(const std::filesystem::path& path, const std::string& input) {
  std::ofstream file(path, std::ios::binary);
  file << input;
  file.close();
  return !file.fail();
}

}  // namespace

int main(int argc, char** argv) {
  using cairn::testing::DecisionFuzzInput;
  using cairn::testing::DecisionInput;
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_decision_corpus DIR\n");
    return 2;
  }
  const std::filesystem::path directory = argv[1];
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  bool ok = true;
  for (uint32_t number = 0; number < kSeeds; ++number) {
    const std::string suffix = std::to_string(number);
    const std::string file = cairn::testing::SoundDecisionFile(number, 1 + number % 3);
    ok = ok &&
         Write(directory / ("file-" + suffix), DecisionFuzzInput(DecisionInput::kFile, file)) &&
         Write(directory / ("mended-" + suffix),
               DecisionFuzzInput(DecisionInput::kMendedFile, file)) &&
         Write(directory / ("record-" + suffix),
               DecisionFuzzInput(DecisionInput::kRecord,
                                 cairn::testing::SoundDecisionRecord(number)));
  }
  if (!ok) std::fprintf(stderr, "write_decision_corpus: cannot write into %s\n", argv[1]);
  return ok ? 0 : 1;
}
