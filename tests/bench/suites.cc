#include "tests/bench/suites.h"

namespace cairn::bench {
namespace {

constexpr Suite kSuites[] = {
    {"flood", "a thousand clients put 8 MiB each at once into a small node", RunFloodSuite},
    {"hash", "block keys (key scheme 1) against bare SHA-256", RunHashSuite},
    {"pressure", "lookups and gets beside writes, evictions and spills at full rate",
     RunPressureSuite},
};

}  // namespace

absl::Span<const Suite> AllSuites() { return kSuites; }

}  // namespace cairn::bench
