#include "tests/sim/crash_note.h"

#include <csignal>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn::sim {
namespace {

constexpr size_t kLinesShown = 60;

// Of the simulation that runs in this process, for the signal's handler.
uint64_t running_seed = 0;
const EventLog* running_log = nullptr;

// The process ends here in any case: that it allocates may cost the note, nothing more.
void OnAbort(int) {
  std::signal(SIGABRT, SIG_DFL);
  if (running_log == nullptr) return;
  for (const std::string& line : running_log->LastLines(kLinesShown)) {
    std::fprintf(stderr, "%s\n", line.c_str());
  }
  std::fprintf(stderr, "seed %llu aborted; again: %s\n",
               static_cast<unsigned long long>(running_seed), ReplayCommand(running_seed).c_str());
}

}  // namespace

std::string ReplayCommand(uint64_t seed) {
  return absl::StrCat("CAIRN_SIM_FIRST_SEED=", seed, " CAIRN_SIM_SEEDS=1 sim_test ",
                      "--gtest_filter='SimSeedsTest.*'");
}

CrashNote::CrashNote(uint64_t seed, const EventLog* log) {
  CAIRN_CHECK(running_log == nullptr);
  running_seed = seed;
  running_log = log;
  std::signal(SIGABRT, OnAbort);
}

CrashNote::~CrashNote() {
  running_log = nullptr;
  std::signal(SIGABRT, SIG_DFL);
}

}  // namespace cairn::sim
