// Blocks out of the memory of a node on this host: 8 blocks of 2 MiB a call, over 1 GiB of them, so
// that nothing stays in a cache.
//
// Copied, against copying and then hashing the very same memory; and read in place, where what
// costs is asking, being answered, and letting go: the processor time of both processes, digests
// apart.
#include <sys/resource.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/byte_hash.h"
#include "tests/bench/datapath/bench_blocks.h"
#include "tests/bench/datapath/bench_node.h"
#include "tests/bench/datapath/figures.h"
#include "tests/bench/datapath/turns.h"

namespace cairn::bench {
namespace {

constexpr uint64_t kBlockBytes = uint64_t{2} << 20;
constexpr uint64_t kSegmentBytes = 64 << 10;
constexpr size_t kBlocksPerCall = 8;
constexpr size_t kCalls = 64;  // In the working set.
constexpr int kRounds = 25;
constexpr int kCpuCalls = 2000;

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

double OwnCpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
}

// Of all its threads. The first number of schedstat is nanoseconds on a processor.
double CpuSecondsOf(int process) {
  double seconds = 0;
  const std::filesystem::path tasks = absl::StrCat("/proc/", process, "/task");
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    double nanoseconds = 0;
    std::ifstream(task.path() / "schedstat") >> nanoseconds;
    seconds += nanoseconds / 1e9;
  }
  return seconds;
}

class ShmParts {
 public:
  static absl::StatusOr<std::unique_ptr<ShmParts>> Start() {
    std::unique_ptr<ShmParts> parts(new ShmParts());
    absl::StatusOr<std::unique_ptr<BenchNode>> node = BenchNode::Start({.pool_mib = 1280});
    if (!node.ok()) return node.status();
    parts->node_ = *std::move(node);
    ClientOptions options = parts->node_->OptionsFor(Transport::kTcp);
    options.use_local = true;
    parts->client_ = std::make_unique<BenchClient>(std::move(options));
    absl::StatusOr<NamespaceHandle> handle = RegisterLayout(**parts->client_, TwoMebibyteParts());
    if (!handle.ok()) return handle.status();
    parts->name_space_ = std::make_unique<NamespaceHandle>(*std::move(handle));
    if (absl::Status put = parts->PutAllPrompts(); !put.ok()) return put;
    return parts;
  }

  absl::StatusOr<Turns> Copies() {
    size_t turn = 0;
    return MeasureTurns(
        [&] {
          const auto& keys = prompts_[turn++ % kCalls]->keys();
          return SecondsOf(
              [&] { return GetAll(**client_, *name_space_, keys, {}, absl::MakeSpan(place_)); });
        },
        [&]() -> absl::StatusOr<double> {
          const auto& keys = prompts_[(turn + kCalls / 2) % kCalls]->keys();
          const absl::StatusOr<InPlaceBlocks> blocks = (*client_)->ReadInPlace(*name_space_, keys);
          if (!blocks.ok()) return blocks.status();
          return SecondsOf([&] { return CopyThenHash(*blocks); });
        },
        kRounds);
  }

  absl::StatusOr<double> CpuSecondsPerBlock() {
    const double before = OwnCpuSeconds() + CpuSecondsOf(node_->process().process().pid());
    for (int call = 0; call < kCpuCalls; ++call) {
      const auto& keys = prompts_[static_cast<size_t>(call) % kCalls]->keys();
      absl::StatusOr<InPlaceBlocks> blocks = (*client_)->ReadInPlace(*name_space_, keys);
      if (!blocks.ok()) return blocks.status();
      for (size_t i = 0; i < kBlocksPerCall; ++i) {
        if (!blocks->Unchanged(i)) return absl::DataLossError("a block is not there");
      }
      blocks->End(kBlocksPerCall);
    }
    const double after = OwnCpuSeconds() + CpuSecondsOf(node_->process().process().pid());
    return (after - before) / (kCpuCalls * static_cast<double>(kBlocksPerCall));
  }

  LocalStats stats() const { return (*client_)->local_stats(); }

 private:
  absl::Status PutAllPrompts() {
    const std::vector<uint8_t> bytes = MakeBytes(kBlocksPerCall * kBlockBytes);
    for (uint32_t call = 0; call < kCalls; ++call) {
      prompts_.push_back(
          std::make_unique<BenchPrompt>(**client_, *name_space_, call, kBlocksPerCall));
      absl::Status put = PutAll(**client_, *name_space_, prompts_.back()->prompt(), bytes);
      if (!put.ok()) return put;
    }
    return absl::OkStatus();
  }

  absl::Status CopyThenHash(const InPlaceBlocks& blocks) {
    for (size_t i = 0; i < kBlocksPerCall; ++i) {
      if (blocks.bytes(i).size() != kBlockBytes) return absl::DataLossError("a block is not there");
      uint8_t* const to = place_.data() + i * kBlockBytes;
      std::memcpy(to, blocks.bytes(i).data(), kBlockBytes);
      for (uint64_t at = 0; at < kBlockBytes; at += kSegmentBytes) {
        digests_ ^= kernels::ByteHash64(to + at, kSegmentBytes, at);
      }
    }
    return absl::OkStatus();
  }

  std::unique_ptr<BenchNode> node_;
  std::unique_ptr<BenchClient> client_;
  std::unique_ptr<NamespaceHandle> name_space_;
  std::vector<std::unique_ptr<BenchPrompt>> prompts_;
  std::vector<uint8_t> place_ = std::vector<uint8_t>(kBlocksPerCall * kBlockBytes, 1);
  uint64_t digests_ = 0;
};

}  // namespace

absl::Status AddShmParts(JsonReport* report) {
  const absl::StatusOr<std::unique_ptr<ShmParts>> parts = ShmParts::Start();
  if (!parts.ok()) return parts.status();
  const absl::StatusOr<Turns> copies = (*parts)->Copies();
  if (!copies.ok()) return copies.status();
  const absl::StatusOr<double> seconds = (*parts)->CpuSecondsPerBlock();
  if (!seconds.ok()) return seconds.status();
  if ((*parts)->stats().fallbacks > 0) {
    return absl::UnavailableError("some calls went over the network");
  }
  const double megabytes = static_cast<double>(kBlocksPerCall * kBlockBytes) / 1e6;
  report->Add("shm_copy_over_floor", copies->ratio());
  report->Add("shm_copy_mb_per_second", megabytes / copies->product_seconds);
  report->Add("shm_copy_floor_mb_per_second", megabytes / copies->floor_seconds);
  report->Add("shm_in_place_cpu_us_per_block", *seconds * 1e6);
  return absl::OkStatus();
}

}  // namespace cairn::bench
