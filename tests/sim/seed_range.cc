#include "tests/sim/seed_range.h"

#include <cstdlib>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "common/base/check.h"

namespace cairn::sim {
namespace {

constexpr char kCountVariable[] = "CAIRN_SIM_SEEDS";
constexpr char kFirstVariable[] = "CAIRN_SIM_FIRST_SEED";

uint64_t NumberOf(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return otherwise;
  uint64_t number = 0;
  CAIRN_CHECK_MSG(absl::SimpleAtoi(text, &number),
                  std::string(variable) + " is '" + text + "'; give a number");
  return number;
}

}  // namespace

SeedRange SeedRange::FromEnvironment(uint64_t count_default) {
  return {.first = NumberOf(kFirstVariable, 1), .count = NumberOf(kCountVariable, count_default)};
}

void SeedRange::TakeFlags(int* argc, char** argv) {
  int kept = 1;
  for (int i = 1; i < *argc; ++i) {
    absl::string_view argument = argv[i];
    if (absl::ConsumePrefix(&argument, "--seeds=")) {
      setenv(kCountVariable, std::string(argument).c_str(), 1);
    } else if (absl::ConsumePrefix(&argument, "--first_seed=")) {
      setenv(kFirstVariable, std::string(argument).c_str(), 1);
    } else {
      argv[kept++] = argv[i];
    }
  }
  *argc = kept;
}

}  // namespace cairn::sim
