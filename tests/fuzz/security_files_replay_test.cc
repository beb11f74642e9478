// Sound files, and what seeded changes of single bytes make of them, through the fuzz entry: where
// there is no libFuzzer, and as a first look where there is.
#include "tests/fuzz/security_files_fuzz.h"
#include "tests/testing/seeded_random.h"

namespace cairn::testing {
namespace {

constexpr char kAccess[] =
    "# who\nspiffe://fleet/ns/a worker,node acme,globex\ncn:ops admin *\n\ntoken:x metrics -\n";
constexpr char kTokens[] =
    "a 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n"
    "b FF112233445566778899aabbccddeeff00112233445566778899aabbccddeeff # old\n";
constexpr char kPublicPrefixes[] =
    "# shared\n9f3c51a07be2441d8a60f2c9d4e7b813  # a prompt\n0F3C51A07BE2441D8A60F2C9D4E7B813\n";
constexpr int kChanges = 20'000;

void FuzzOnce(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

TEST(SecurityFilesFuzz, SoundFilesParse) {
  EXPECT_TRUE(ParsesAsSecurityFile(SecurityFile::kAccess, kAccess));
  EXPECT_TRUE(ParsesAsSecurityFile(SecurityFile::kTokens, kTokens));
  EXPECT_TRUE(ParsesAsSecurityFile(SecurityFile::kAccess, ""));
  EXPECT_TRUE(ParsesAsSecurityFile(SecurityFile::kPublicPrefixes, kPublicPrefixes));
  EXPECT_FALSE(ParsesAsSecurityFile(SecurityFile::kPublicPrefixes, kTokens));
  EXPECT_FALSE(ParsesAsSecurityFile(SecurityFile::kAccess, kTokens));
  EXPECT_FALSE(ParsesAsSecurityFile(SecurityFile::kTokens, kAccess));
}

TEST(SecurityFilesFuzz, ChangedFilesBreakNoPromise) {
  SeededRandom random(1);
  for (const auto& [file, text] :
       {std::pair{SecurityFile::kAccess, std::string(kAccess)},
        std::pair{SecurityFile::kTokens, std::string(kTokens)},
        std::pair{SecurityFile::kPublicPrefixes, std::string(kPublicPrefixes)}}) {
    for (int i = 0; i < kChanges; ++i) {
      std::string changed = text;
      uint8_t dice[6];
      random.Fill(dice, sizeof(dice));
      for (int change = 0; change <= dice[0] % 3; ++change) {
        const size_t at = (dice[1 + change] * 256u + dice[2 + change]) % changed.size();
        if (dice[4] % 4 == 0) {
          changed.erase(at, 1);
        } else {
          changed[at] = static_cast<char>(dice[5] ^ (change * 37));
        }
      }
      FuzzOnce(SecurityFuzzInput(file, changed));
    }
  }
}

}  // namespace
}  // namespace cairn::testing
