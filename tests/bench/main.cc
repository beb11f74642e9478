// cairn-bench SUITE [--json [FILE]] [flags of the suite]: measures one suite, prints its figures as
// JSON and writes them to FILE too. Suites that need a disk put their files into --dir DIR.
//
// Exit status: 0 measured, 1 could not measure or write, 2 wrong usage.
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tests/bench/suites.h"

namespace cairn::bench {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

struct Arguments {
  std::string suite;
  std::string json_path;  // Empty: print only.
  SuiteOptions options;
  bool help = false;
  std::string error;  // Not empty: what is wrong with the rest.
};

// The flag's value: what follows its "=", or the next word. Nothing: it is another flag, or has
// none.
std::optional<std::string> ValueOf(absl::string_view flag, const std::vector<std::string>& words,
                                   size_t* at) {
  absl::string_view word = words[*at];
  if (!absl::ConsumePrefix(&word, flag)) return std::nullopt;
  if (absl::ConsumePrefix(&word, "=")) return std::string(word);
  if (!word.empty() || *at + 1 >= words.size()) return std::nullopt;
  return words[++*at];
}

bool TakeOption(const std::vector<std::string>& words, size_t* at, SuiteOptions* options) {
  struct Text {
    absl::string_view flag;
    std::string* value;
  };
  for (const Text& text : {Text{"--dir", &options->dir}, Text{"--trace", &options->trace},
                           Text{"--traces", &options->traces}, Text{"--source", &options->source},
                           Text{"--policy", &options->policy}, Text{"--only", &options->only},
                           Text{"--model", &options->model}}) {
    if (std::optional<std::string> value = ValueOf(text.flag, words, at)) {
      *text.value = *std::move(value);
      return true;
    }
  }
  struct Count {
    absl::string_view flag;
    uint32_t* value;
  };
  for (const Count& count :
       {Count{"--capacity", &options->capacity}, Count{"--nodes", &options->nodes},
        Count{"--routers", &options->routers}, Count{"--seeds", &options->seeds},
        Count{"--kv-tokens", &options->kv_tokens}}) {
    if (std::optional<std::string> value = ValueOf(count.flag, words, at)) {
      return absl::SimpleAtoi(*value, count.value) && *count.value > 0;
    }
  }
  struct Real {
    absl::string_view flag;
    double* value;
    double max;
  };
  for (const Real& real :
       {Real{"--stale-seconds", &options->stale_seconds, 1e6},
        Real{"--lose-batches", &options->lose_batches, 1}, Real{"--load", &options->load, 10},
        Real{"--slow-share", &options->slow_share, 1},
        Real{"--slow-speed", &options->slow_speed, 1},
        Real{"--slo-ttft-seconds", &options->slo_ttft_seconds, 1e6},
        Real{"--slo-tpot-ms", &options->slo_tpot_ms, 1e6}}) {
    if (std::optional<std::string> value = ValueOf(real.flag, words, at)) {
      return absl::SimpleAtod(*value, real.value) && *real.value >= 0 && *real.value <= real.max;
    }
  }
  options->partial = options->partial || words[*at] == "--partial";
  options->grid = options->grid || words[*at] == "--grid";
  return words[*at] == "--partial" || words[*at] == "--grid";
}

Arguments Parse(const std::vector<std::string>& words) {
  Arguments arguments;
  for (size_t i = 0; i < words.size() && arguments.error.empty(); ++i) {
    const size_t flag = i;
    absl::string_view word = words[i];
    if (word == "--help" || word == "-h") {
      arguments.help = true;
    } else if (word == "--json") {
      const bool names_file = i + 1 < words.size() && !absl::StartsWith(words[i + 1], "-");
      if (names_file) arguments.json_path = words[++i];
    } else if (absl::ConsumePrefix(&word, "--json=")) {
      arguments.json_path = std::string(word);
    } else if (absl::StartsWith(word, "-")) {
      if (TakeOption(words, &i, &arguments.options)) continue;
      arguments.error = absl::StrCat("unknown or incomplete flag: ", words[flag]);
    } else if (arguments.suite.empty()) {
      arguments.suite = words[i];
    } else {
      arguments.error = absl::StrCat("one suite at a time, not also: ", words[i]);
    }
  }
  if (arguments.suite.empty() && arguments.error.empty()) arguments.error = "no suite named";
  return arguments;
}

void PrintUsage(std::FILE* out) {
  std::fputs(
      "usage: cairn-bench SUITE [--json [FILE]] [--dir DIR]\n"
      "       cairn-bench datapath [--only FAMILY]\n"
      "       cairn-bench eviction --trace FILE --capacity BLOCKS [--policy NAME] [--partial] "
      "[--source NAME]\n"
      "       cairn-bench eviction --grid --traces DIR [--policy NAME]\n"
      "       cairn-bench index [--trace FILE]\n"
      "       cairn-bench routing --trace FILE --capacity BLOCKS [--nodes N] [--policy NAME] "
      "[--stale-seconds S] [--lose-batches SHARE] [--routers N] [--seeds N] [--partial] "
      "[--source NAME]\n"
      "       cairn-bench routing --model decode --trace FILE --capacity BLOCKS [--nodes N] "
      "[--policy NAME] [--load SHARE] [--slow-share SHARE] [--slow-speed FACTOR] [--kv-tokens N] "
      "[--slo-ttft-seconds S] [--slo-tpot-ms MS]\n"
      "       (--capacity: blocks of each node; --policy all: each listed one, beside the "
      "default)\n"
      "tests/bench/README.md says what the figures mean.\n"
      "suites:\n",
      out);
  for (const Suite& suite : AllSuites()) {
    std::fprintf(out, "  %s: %s\n", std::string(suite.name).c_str(),
                 std::string(suite.what).c_str());
  }
}

int Usage(const std::string& error) {
  std::fprintf(stderr, "cairn-bench: %s\n", error.c_str());
  PrintUsage(stderr);
  return kExitUsage;
}

int Run(const Suite& suite, const SuiteOptions& options, const std::string& json_path) {
  JsonReport report;
  absl::Status status = suite.run(options, &report);
  if (status.ok()) {
    std::fputs(report.ToJson().c_str(), stdout);
    if (!json_path.empty()) status = report.WriteTo(json_path);
  }
  if (status.ok()) return 0;
  std::fprintf(stderr, "cairn-bench: %s\n", status.ToString().c_str());
  return kExitFailed;
}

int Main(const std::vector<std::string>& words) {
  const Arguments arguments = Parse(words);
  if (arguments.help) {
    PrintUsage(stdout);
    return 0;
  }
  if (!arguments.error.empty()) return Usage(arguments.error);
  for (const Suite& suite : AllSuites()) {
    if (suite.name == arguments.suite) return Run(suite, arguments.options, arguments.json_path);
  }
  return Usage(absl::StrCat("unknown suite: ", arguments.suite));
}

}  // namespace
}  // namespace cairn::bench

int main(int argc, char** argv) {
  return cairn::bench::Main(std::vector<std::string>(argv + 1, argv + argc));
}
