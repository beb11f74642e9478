// write_disk_corpus DIR: writes seed inputs of the disk formats' fuzz target into DIR.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "tests/fuzz/disk_format_fuzz.h"

namespace {

constexpr uint64_t kSeedsPerFormat = 12;

}  // namespace

int main(int argc, char** argv) {
  using cairn::testing::DiskFormat;
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_disk_corpus DIR\n");
    return 2;
  }
  const std::filesystem::path directory = argv[1];
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  for (uint8_t kind = 0; kind < cairn::testing::kDiskFormats; ++kind) {
    const auto format = static_cast<DiskFormat>(kind);
    for (uint64_t number = 0; number < kSeedsPerFormat; ++number) {
      const std::string name = std::to_string(kind) + "-" + std::to_string(number);
      std::ofstream file(directory / name, std::ios::binary);
      file << cairn::testing::DiskFuzzInput(format, /*mend_checksum=*/true,
                                            cairn::testing::SoundValue(format, number));
      file.close();
      if (file.fail()) {
        std::fprintf(stderr, "write_disk_corpus: cannot write into %s\n", argv[1]);
        return 1;
      }
    }
  }
  return 0;
}
