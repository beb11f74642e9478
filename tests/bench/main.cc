// cairn-bench SUITE [--json [FILE]] [--dir DIR]: measures one suite, prints its figures as JSON and
// writes them to FILE too. Suites that need a disk put their files into DIR.
//
// Exit status: 0 measured, 1 could not measure or write, 2 wrong usage.
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/match.h"
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
  std::string error;  // Not empty: what is wrong with the rest.
};

Arguments Parse(const std::vector<std::string>& words) {
  Arguments arguments;
  for (size_t i = 0; i < words.size() && arguments.error.empty(); ++i) {
    absl::string_view word = words[i];
    if (word == "--json") {
      const bool names_file = i + 1 < words.size() && !absl::StartsWith(words[i + 1], "-");
      if (names_file) arguments.json_path = words[++i];
    } else if (absl::ConsumePrefix(&word, "--json=")) {
      arguments.json_path = std::string(word);
    } else if (word == "--dir" && i + 1 < words.size()) {
      arguments.options.dir = words[++i];
    } else if (absl::ConsumePrefix(&word, "--dir=")) {
      arguments.options.dir = std::string(word);
    } else if (absl::StartsWith(word, "-")) {
      arguments.error = absl::StrCat("unknown or incomplete flag: ", words[i]);
    } else if (arguments.suite.empty()) {
      arguments.suite = words[i];
    } else {
      arguments.error = absl::StrCat("one suite at a time, not also: ", words[i]);
    }
  }
  if (arguments.suite.empty() && arguments.error.empty()) arguments.error = "no suite named";
  return arguments;
}

int Usage(const std::string& error) {
  std::fprintf(stderr,
               "cairn-bench: %s\nusage: cairn-bench SUITE [--json [FILE]] [--dir DIR]\nsuites:\n",
               error.c_str());
  for (const Suite& suite : AllSuites()) {
    std::fprintf(stderr, "  %s: %s\n", std::string(suite.name).c_str(),
                 std::string(suite.what).c_str());
  }
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
