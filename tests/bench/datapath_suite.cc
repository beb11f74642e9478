// The data path between a client and a node in a process of its own: over loopback TCP, a Unix
// socket and TLS, large parts and small blocks, lookups, memory. Floors move and hash the same
// bytes, in turns with the product. One file of datapath/ for each family of figures.
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/server/allocator.h"
#include "tests/bench/datapath/figures.h"
#include "tests/bench/suites.h"

namespace cairn::bench {

namespace {

struct Family {
  const char* name;
  absl::Status (*add)(JsonReport* report);
};
constexpr Family kFamilies[] = {
    {"large", AddLargeParts}, {"ranks", AddRankParts}, {"small", AddSmallBlocks},
    {"lookups", AddLookups},  {"shm", AddShmParts},    {"memory", AddMemory},
};

}  // namespace

absl::Status RunDatapathSuite(const SuiteOptions& options, JsonReport* report) {
  TuneAllocator();  // As programs do that move megabytes (client/cpp/README.md).
  bool measured = false;
  for (const Family& family : kFamilies) {
    if (!options.only.empty() && options.only != family.name) continue;
    measured = true;
    if (absl::Status status = family.add(report); !status.ok()) return status;
  }
  if (measured) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--only ", options.only, ": no such family of figures; there are ",
      absl::StrJoin(kFamilies, ", ",
                    [](std::string* out, const Family& family) { out->append(family.name); })));
}

}  // namespace cairn::bench
