// The program itself: its figures against the project's limits, in up to three tries, since a
// neighbour on the machine can spoil one of them; and what it says to wrong usage.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/cpu_path.h"

namespace cairn::bench {
namespace {

using ::testing::HasSubstr;

constexpr int kTries = 3;
constexpr int kPressureRuns = 3;
constexpr double kPressureRatioMost = 3.0;
constexpr double kRatio16Least = 0.45;
constexpr double kRatio512Least = 0.85;

// About half of what kernels must reach on a quiet machine with AVX-512 and bf16 dot products: a
// kernel that lost its vectors or its prefetches is slower than that, a busy machine is not.
struct Least {
  const char* figure;
  double value;
};
std::vector<Least> DecodeLeast() {
  if (kernels::BestCpuPath() != kernels::CpuPath::kAvx512Bf16)
    return {{"shared_prefix_speedup", 1}};
  return {
      {"bf16_g1_ratio", 0.45},
      {"bf16_g4_ratio", 0.45},
      {"bf16_g8_ratio", 0.45},
      {"avx2_bf16_g4_ratio", 0.3},
      {"fp8_tokens_over_bf16", 0.8},
      {"int8_tokens_over_bf16", 0.8},
      {"fp16_tokens_over_bf16", 0.4},
      {"shared_prefix_speedup", 3},
      {"latent_h64_over_dots_ratio", 0.2},
  };
}
constexpr double kDataPathSecondsMost = 60;
constexpr double kDecodeSecondsMost = 120;  // 25 on a quiet machine, 60 were seen on a busy one.

// Runs cairn-bench with `arguments`; its exit status, and what it wrote to stderr.
int Bench(const std::string& arguments, std::string* errors) {
  const std::string path = ::testing::TempDir() + "/cairn_bench_test.stderr";
  const std::string command =
      std::string(CAIRN_BIN_DIR) + "/cairn-bench " + arguments + " >/dev/null 2>" + path;
  const int status = std::system(command.c_str());
  std::ifstream file(path);
  errors->assign(std::istreambuf_iterator<char>(file), {});
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(CairnBenchTest, HashKeepsItsRatios) {
  const std::string path = ::testing::TempDir() + "/cairn_bench_hash.json";
  double ratio_16 = 0, ratio_512 = 0;
  for (int i = 0; i < kTries && (ratio_16 < kRatio16Least || ratio_512 < kRatio512Least); ++i) {
    std::string errors;
    ASSERT_EQ(Bench("hash --json " + path, &errors), 0) << errors;
    std::ifstream file(path);
    const nlohmann::json json = nlohmann::json::parse(file);
    EXPECT_GT(json.at("keys_per_second_16").get<double>(), 0);
    ratio_16 = std::max(ratio_16, json.at("ratio_16").get<double>());
    ratio_512 = std::max(ratio_512, json.at("ratio_512").get<double>());
  }
  EXPECT_GE(ratio_16, kRatio16Least);
  EXPECT_GE(ratio_512, kRatio512Least);
}

// The machine may be busy with other things: the best of a few runs counts.
TEST(CairnBenchTest, ReadersBarelyFeelThatBlocksAreSpilledAndFilesMakeRoom) {
  const std::string path = ::testing::TempDir() + "/cairn_bench_pressure.json";
  double lookup_ratio = kPressureRatioMost + 1;
  double get_ratio = kPressureRatioMost + 1;
  for (int run = 0; run < kPressureRuns; ++run) {
    std::string errors;
    ASSERT_EQ(Bench("pressure --dir " + ::testing::TempDir() + " --json " + path, &errors), 0)
        << errors;
    std::ifstream file(path);
    const nlohmann::json json = nlohmann::json::parse(file);
    ASSERT_GT(json.at("spilled_bytes_per_second").get<double>(), 0);
    ASSERT_GT(json.at("reclaimed_files").get<double>(), 0);
    lookup_ratio = std::min(lookup_ratio, json.at("lookup_p99_ratio").get<double>());
    get_ratio = std::min(get_ratio, json.at("get_p99_ratio").get<double>());
    if (lookup_ratio <= kPressureRatioMost && get_ratio <= kPressureRatioMost) break;
  }
  EXPECT_LE(lookup_ratio, kPressureRatioMost);
  EXPECT_LE(get_ratio, kPressureRatioMost);
}

// Runs the suite until each figure has reached its least once, at most kTries times.
void ExpectReached(const std::string& arguments, const std::vector<Least>& leasts,
                   double seconds_most) {
  const std::string path = ::testing::TempDir() + "/cairn_bench_reached.json";
  std::map<std::string, double> best;
  const auto is_short = [&](const Least& least) { return best[least.figure] < least.value; };
  for (int i = 0; i < kTries && std::any_of(leasts.begin(), leasts.end(), is_short); ++i) {
    std::string errors;
    const absl::Time start = absl::Now();
    ASSERT_EQ(Bench(arguments + " --json " + path, &errors), 0) << errors;
    EXPECT_LT(absl::ToDoubleSeconds(absl::Now() - start), seconds_most);
    std::ifstream file(path);
    const nlohmann::json json = nlohmann::json::parse(file);
    for (const Least& least : leasts) {
      best[least.figure] = std::max(best[least.figure], json.at(least.figure).get<double>());
    }
  }
  for (const Least& least : leasts) {
    EXPECT_GE(best[least.figure], least.value) << least.figure;
  }
}

TEST(CairnBenchTest, DecodeKeepsItsVectorsAndItsPrefetches) {
  ExpectReached("decode", DecodeLeast(), kDecodeSecondsMost);
}

// Some two thirds of what is asked for on a quiet machine: a path that copies once more, or waits
// for each message, is slower than that.
TEST(CairnBenchTest, DataPathKeepsItsRatiosToPlainSockets) {
  ExpectReached("datapath --only large", {{"get_over_tcp", 0.6}, {"put_over_tcp", 0.55}},
                kDataPathSecondsMost);
  ExpectReached("datapath --only ranks", {{"get_256k_over_tcp", 0.4}, {"put_256k_over_tcp", 0.4}},
                kDataPathSecondsMost);
  ExpectReached("datapath --only small",
                {{"small_put_blocks_per_second", 40e3}, {"small_get_blocks_per_second", 70e3}},
                kDataPathSecondsMost);
  ExpectReached("datapath --only lookups", {{"lookup_keys_per_second", 1e6}}, kDataPathSecondsMost);
}

TEST(CairnBenchTest, AnUnknownFamilyListsThoseThereAre) {
  std::string errors;
  EXPECT_EQ(Bench("datapath --only larch", &errors), 1);
  EXPECT_THAT(errors, HasSubstr("larch"));
  EXPECT_THAT(errors, HasSubstr("large, ranks"));
  EXPECT_EQ(Bench("hit --only ftp", &errors), 1);
  EXPECT_THAT(errors, HasSubstr("tcp, uds, tls, shm"));
}

TEST(CairnBenchTest, AnUnknownSuiteListsThoseThereAre) {
  std::string errors;
  EXPECT_EQ(Bench("hush", &errors), 2);
  EXPECT_THAT(errors, HasSubstr("unknown suite: hush"));
  EXPECT_THAT(errors, HasSubstr("  hash: "));
}

TEST(CairnBenchTest, WrongUsageSaysWhatIsWrong) {
  std::string errors;
  EXPECT_EQ(Bench("", &errors), 2);
  EXPECT_THAT(errors, HasSubstr("no suite named"));
  EXPECT_EQ(Bench("hash --jason x", &errors), 2);
  EXPECT_THAT(errors, HasSubstr("--jason"));
  EXPECT_EQ(Bench("hash --dir", &errors), 2);
  EXPECT_THAT(errors, HasSubstr("--dir"));
  EXPECT_EQ(Bench("hash hash", &errors), 2);
  EXPECT_THAT(errors, HasSubstr("one suite at a time"));
}

TEST(CairnBenchTest, EvictionCountsATraceAndSaysWhatItNeeds) {
  const std::string trace = ::testing::TempDir() + "/cairn_bench_eviction.txt";
  const std::string json = ::testing::TempDir() + "/cairn_bench_eviction.json";
  // Two prompts in turns; only one of them fits, and the best cache keeps it.
  std::ofstream(trace) << "0 128 1 0 1-2\n1 128 1 0 5-6\n2 128 1 0 1-2\n3 128 1 0 5-6\n";
  std::string errors;
  ASSERT_EQ(
      Bench("eviction --trace " + trace + " --capacity 2 --policy lru --json " + json, &errors), 0)
      << errors;
  std::ifstream file(json);
  const nlohmann::json figures = nlohmann::json::parse(file);
  EXPECT_EQ(figures.at("blocks"), 8);
  EXPECT_EQ(figures.at("hit_blocks"), 0);
  EXPECT_EQ(figures.at("belady_hit_blocks"), 2);
  EXPECT_EQ(figures.at("unlimited_hit_blocks"), 4);
  EXPECT_GT(figures.at("policy_ns_per_block"), 0);
  EXPECT_EQ(Bench("eviction", &errors), 1);
  EXPECT_THAT(errors, HasSubstr("--capacity"));
  EXPECT_EQ(Bench("eviction --trace " + trace + " --capacity 2 --policy mru", &errors), 1);
  EXPECT_THAT(errors, HasSubstr("s3_fifo"));
  EXPECT_EQ(Bench("eviction --capacity 0", &errors), 2);
  EXPECT_EQ(Bench("eviction --grid --traces /nowhere", &errors), 1);
  EXPECT_THAT(errors, HasSubstr("/nowhere"));
}

TEST(CairnBenchTest, AFileThatCannotBeWrittenIsAFailure) {
  std::string errors;
  EXPECT_EQ(Bench("hash --json /nowhere/at/all.json", &errors), 1);
  EXPECT_THAT(errors, HasSubstr("/nowhere/at/all.json"));
}

}  // namespace
}  // namespace cairn::bench
