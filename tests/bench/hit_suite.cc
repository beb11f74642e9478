// What a hit costs: a prompt whose KV a node holds, from the lookup to the last verified byte at
// its destination, over each transport and out of the memory of a node on the same host; against
// copying and hashing as many bytes.
//
// A model of 128 KiB a token (32 layers of 64 KiB a block of 16 tokens). Prompts of 1 k to 128 k
// tokens, 128 MiB to 16 GiB. The node holds at most kHeldBlocks (4 GiB): of a longer prompt the
// same blocks are read again, pass after pass, and all its bytes do move; each lands in one of
// kPlaceBlocks places (512 MiB) in turns, as an engine's pages of one step are reused. Every
// segment is hashed against its key where it landed.
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/server/allocator.h"
#include "kernels/byte_hash.h"
#include "tests/bench/datapath/hit_reader.h"
#include "tests/bench/datapath/turns.h"
#include "tests/bench/suites.h"

namespace cairn::bench {
namespace {

constexpr size_t kThousandTokens[] = {1, 8, 32, 128};
constexpr size_t kBlocksPerThousand = 64;  // 1,024 tokens.
constexpr size_t kPieceBytes = 64 << 10;

// Copies and hashes what a hit moves, from memory as large to places as many.
class CopyFloor {
 public:
  CopyFloor() : from_(MakeBytes(kPlaceBlocks * kHitBlockBytes)), to_(from_.size()) {}

  double Seconds(size_t blocks) {
    volatile uint64_t digest = 0;
    const absl::StatusOr<double> seconds = SecondsOf([&] {
      for (uint64_t at = 0; at < blocks * kHitBlockBytes; at += kPieceBytes) {
        const uint64_t place = at % from_.size();
        std::memcpy(to_.data() + place, from_.data() + place, kPieceBytes);
        digest = kernels::ByteHash64(to_.data() + place, kPieceBytes, at);
      }
      return absl::OkStatus();
    });
    (void)digest;
    return *seconds;
  }

 private:
  std::vector<uint8_t> from_;
  std::vector<uint8_t> to_;
};

struct Path {
  Transport transport;
  bool local;  // Through the node's memory where it can be.
  const char* name;
};
constexpr Path kPaths[] = {{Transport::kTcp, false, "tcp"},
                           {Transport::kUnix, false, "uds"},
                           {Transport::kTls, false, "tls"},
                           {Transport::kTcp, true, "shm"}};

absl::Status MeasurePath(const Path& path, CopyFloor* floor, JsonReport* report) {
  const absl::StatusOr<std::unique_ptr<HitReader>> reader =
      HitReader::Start(path.transport, path.local);
  if (!reader.ok()) return reader.status();
  for (const size_t thousand : kThousandTokens) {
    const size_t blocks = thousand * kBlocksPerThousand;
    const std::string size = absl::StrCat(path.name, "_", thousand, "k");
    // Long ones are steady by themselves; the median of short ones.
    const int rounds = thousand <= 8 ? 5 : 1;
    HitTimes times;
    const absl::StatusOr<Turns> turns = MeasureTurns(
        [&]() -> absl::StatusOr<double> {
          const absl::StatusOr<HitTimes> hit = (*reader)->Hit(blocks);
          if (!hit.ok()) return hit.status();
          times = *hit;
          return hit->all_seconds;
        },
        [&]() -> absl::StatusOr<double> { return floor->Seconds(blocks); }, rounds,
        /*warm_up=*/thousand <= 8);
    if (!turns.ok()) return turns.status();
    const double tokens = static_cast<double>(blocks) * 16;
    report->Add(absl::StrCat(size, "_seconds"), turns->product_seconds);
    report->Add(absl::StrCat(size, "_copy_floor_seconds"), turns->floor_seconds);
    report->Add(absl::StrCat(size, "_over_copy_floor"),
                turns->product_seconds / turns->floor_seconds);
    report->Add(absl::StrCat(size, "_first_layer_ready_ms"), times.first_layer_seconds * 1e3);
    report->Add(absl::StrCat(size, "_break_even_prefill_tokens_per_second"),
                tokens / turns->product_seconds);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunHitSuite(const SuiteOptions& options, JsonReport* report) {
  TuneAllocator();  // As programs do that move megabytes (client/cpp/README.md).
  std::unique_ptr<CopyFloor> floor;
  for (const Path& path : kPaths) {
    if (!options.only.empty() && options.only != path.name) continue;
    if (floor == nullptr) floor = std::make_unique<CopyFloor>();
    if (absl::Status status = MeasurePath(path, floor.get(), report); !status.ok()) return status;
  }
  if (floor != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--only ", options.only, ": no such transport; there are tcp, uds, tls, shm"));
}

}  // namespace cairn::bench
