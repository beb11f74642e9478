// CrashNote: says which seed it was when the product's own checks end the process.
//
// While one lives, an abort prints the seed, the command that replays it and the last events. One
// at a time.
#pragma once

#include <cstdint>
#include <string>

#include "tests/sim/event_log.h"

namespace cairn::sim {

// The command line that runs this seed again.
std::string ReplayCommand(uint64_t seed);

class CrashNote {
 public:
  CrashNote(uint64_t seed, const EventLog* log);
  ~CrashNote();

  CrashNote(const CrashNote&) = delete;
  CrashNote& operator=(const CrashNote&) = delete;
};

}  // namespace cairn::sim
