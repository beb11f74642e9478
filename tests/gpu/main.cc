// cairn-gpu-check: every kernel against the CPU's, and the bench; see README.md.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/gpu/backend.h"
#include "tests/gpu/bench.h"
#include "tests/gpu/cases.h"

namespace cairn::gpu_check {
namespace {

constexpr const char* kUsage =
    "usage: cairn-gpu-check [options]\n"
    "  --device N       cuda:N, 0 if not given\n"
    "  --emulated       on the CPU instead\n"
    "  --order ORDER    of emulated lanes: forward, reverse or random\n"
    "  --small          only cases fit for a memory checker\n"
    "  --filter TEXT    only cases whose name has it\n"
    "  --bench          the bench as well (emulated: tiny, without figures)\n"
    "  --json FILE      one flat object with the results\n"
    "Ends with 0 if all was right, 1 if a case or the bench failed, 2 for a wrong option, 3 "
    "without\n"
    "a device.\n";

struct Options {
  int device = 0;
  bool emulated = false;
  std::string order = "forward";
  bool small = false;
  std::string filter;
  bool bench = false;
  std::string json;
};

bool Parse(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const auto value = [&](std::string* to) {
      if (i + 1 >= argc) return false;
      *to = argv[++i];
      return true;
    };
    std::string number;
    if (name == "--emulated") {
      options->emulated = true;
    } else if (name == "--small") {
      options->small = true;
    } else if (name == "--bench") {
      options->bench = true;
    } else if (name == "--device" && value(&number) && !number.empty() && number.size() < 4 &&
               number.find_first_not_of("0123456789") == std::string::npos) {
      options->device = std::atoi(number.c_str());
    } else if ((name != "--order" || !value(&options->order)) &&
               (name != "--filter" || !value(&options->filter)) &&
               (name != "--json" || !value(&options->json))) {
      std::fprintf(stderr, "cairn-gpu-check: option '%s' is unknown or wrong\n%s", name.c_str(),
                   kUsage);
      return false;
    }
  }
  return true;
}

struct CaseCounts {
  uint32_t run = 0;
  uint32_t failed = 0;
};

CaseCounts RunCases(Backend* backend, const Options& options) {
  CaseCounts counts;
  for (const GpuCase& one : AllCases()) {
    if (options.small && !one.is_small) continue;
    if (one.name.find(options.filter) == std::string::npos) continue;
    GpuRig rig(backend->device(), backend->kernels(), backend->registry(), backend->probe());
    Problem problem = one.run(rig);
    if (problem.empty()) problem = rig.TakeProblem();
    ++counts.run;
    if (!problem.empty()) ++counts.failed;
    std::printf("%-6s %s%s%s\n", problem.empty() ? "ok" : "FAILED", one.name.c_str(),
                problem.empty() ? "" : ": ", problem.c_str());
    std::fflush(stdout);
  }
  return counts;
}

Problem RunBench(Backend* backend, BenchReport* report) {
  Problem problem = BenchAttention(backend, report);
  if (problem.empty()) problem = BenchCopies(backend, report);
  if (problem.empty()) problem = BenchByteKernels(backend, report);
  return problem;
}

// Names of devices have no characters that would need more.
std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

bool WriteJson(const std::string& path, const Backend& backend, const CaseCounts& counts,
               const BenchReport& report) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  if (file == nullptr) {
    std::fprintf(stderr, "cairn-gpu-check: %s: %s\n", path.c_str(), std::strerror(errno));
    return false;
  }
  std::fprintf(file, "{\n  \"gpu_device\": %s,\n", Quoted(backend.facts().name).c_str());
  std::fprintf(file, "  \"gpu_cases\": %u,\n  \"gpu_cases_failed\": %u", counts.run, counts.failed);
  // An emulated device's times mean nothing.
  if (!backend.facts().is_emulated) {
    for (const auto& [key, value] : report.values()) {
      std::fprintf(file, ",\n  %s: %.6g", Quoted(key).c_str(), value);
    }
  }
  std::fprintf(file, "\n}\n");
  return std::fclose(file) == 0;
}

int Run(const Options& options) {
  std::unique_ptr<Backend> backend;
  const Problem problem = options.emulated ? MakeEmulatedBackend(options.order, &backend)
                                           : MakeCudaBackend(options.device, &backend);
  if (!problem.empty()) {
    std::fprintf(stderr, "cairn-gpu-check: %s\n", problem.c_str());
    return options.emulated ? 2 : 3;
  }
  std::printf("device: %s\n", backend->facts().name.c_str());
  const CaseCounts counts = RunCases(backend.get(), options);
  std::printf("%u cases, %u failed\n", counts.run, counts.failed);
  BenchReport report(options.emulated);
  Problem bench_problem;
  if (options.bench && counts.failed == 0) {
    bench_problem = RunBench(backend.get(), &report);
    if (!bench_problem.empty()) std::printf("FAILED bench: %s\n", bench_problem.c_str());
  }
  if (!options.json.empty() && !WriteJson(options.json, *backend, counts, report)) return 1;
  if (counts.run == 0) std::fprintf(stderr, "cairn-gpu-check: no case has that name\n");
  return counts.run > 0 && counts.failed == 0 && bench_problem.empty() ? 0 : 1;
}

}  // namespace
}  // namespace cairn::gpu_check

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--help") == 0) {
      std::fputs(cairn::gpu_check::kUsage, stdout);
      return 0;
    }
  }
  cairn::gpu_check::Options options;
  if (!cairn::gpu_check::Parse(argc, argv, &options)) return 2;
  return cairn::gpu_check::Run(options);
}
