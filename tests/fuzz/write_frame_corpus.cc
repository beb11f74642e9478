// write_frame_corpus DIR: writes seed inputs of the frame decoder's fuzz target into DIR.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "tests/fuzz/frame_corpus.h"

namespace {

constexpr int kSeeds = 64;

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_frame_corpus DIR\n");
    return 2;
  }
  const std::filesystem::path directory = argv[1];
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  cairn::testing::Random random(1);
  for (int i = 0; i < kSeeds; ++i) {
    std::ofstream file(directory / ("seed-" + std::to_string(i)), std::ios::binary);
    file << cairn::testing::RandomFuzzInput(random);
    file.close();
    if (file.fail()) {
      std::fprintf(stderr, "write_frame_corpus: cannot write into %s\n", argv[1]);
      return 1;
    }
  }
  return 0;
}
