// Writing and reading blocks of 2 MiB through the disk tier, beside fio in turns.
#include <algorithm>
#include <atomic>
#include <fstream>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "cache_node/tiers/disk/rocksdb_disk_tier.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "tests/bench/fio_floor.h"
#include "tests/bench/spill_parts.h"

namespace cairn::bench {
namespace {

using node::DiskFileBuilder;
using node::DiskPlace;
using node::DiskRecord;
using node::DiskScope;
using node::RocksDbDiskTier;

constexpr uint64_t kBlockBytes = uint64_t{2} << 20;
constexpr uint64_t kFileBytes = uint64_t{256} << 20;
constexpr uint64_t kTransferBytes = uint64_t{2} << 30;  // Of one round.
constexpr uint64_t kTransferDisk = uint64_t{8} << 30;
constexpr int kDepth = 2;  // Blocks on their way at a time, there and in fio.
constexpr int kRounds = 5;

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// What was written of one round.
struct Written {
  BlockKey key;
  DiskPlace place;
  std::vector<uint64_t> digests;
};

// Writes and reads blocks of 2 MiB as movers do: digests are checked after each read.
class Transfer {
 public:
  explicit Transfer(RocksDbDiskTier* tier)
      : tier_(tier),
        name_space_(SpillNamespace(32, 8, 128)),
        scope_(PublicScope(name_space_)),
        map_(*PayloadMap::Make(name_space_.layout)),
        payload_(kBlockBytes) {
    CAIRN_CHECK(map_.block_bytes() == kBlockBytes);
    std::mt19937_64 random(1);
    for (uint8_t& byte : payload_) byte = static_cast<uint8_t>(random());
  }

  // Seconds that it took.
  absl::StatusOr<double> Write() {
    Forget();
    written_.resize(kDepth);
    const absl::Time began = SystemClock().SteadyNow();
    absl::Status status = OnThreads([this](int thread) { return WriteFiles(thread); });
    if (!status.ok()) return status;
    return SecondsSince(began);
  }

  absl::StatusOr<double> Read() {
    std::vector<const Written*> all;
    for (const std::vector<Written>& some : written_) {
      for (const Written& one : some) all.push_back(&one);
    }
    std::shuffle(all.begin(), all.end(), std::mt19937_64(2));
    std::atomic<size_t> next{0};
    const absl::Time began = SystemClock().SteadyNow();
    absl::Status status = OnThreads([&](int) { return ReadBlocks(all, &next); });
    if (!status.ok()) return status;
    return SecondsSince(began);
  }

 private:
  template <typename Work>
  absl::Status OnThreads(const Work& work) {
    std::vector<absl::Status> statuses(kDepth);
    std::vector<std::thread> threads;
    for (int i = 0; i < kDepth; ++i) {
      threads.emplace_back([&, i] { statuses[static_cast<size_t>(i)] = work(i); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const absl::Status& status : statuses) {
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  void Forget() {
    for (const std::vector<Written>& some : written_) {
      for (const Written& one : some) CAIRN_CHECK(tier_->DropFile(one.place.file).ok());
    }
    written_.clear();
  }

  absl::Status WriteFiles(int thread) {
    for (uint64_t file = 0; file < kTransferBytes / kFileBytes / kDepth; ++file) {
      absl::StatusOr<std::unique_ptr<DiskFileBuilder>> builder = tier_->StartFile();
      if (!builder.ok()) return builder.status();
      for (uint64_t i = 0; i < kFileBytes / kBlockBytes; ++i) {
        if (absl::Status status = WriteBlock(thread, builder->get()); !status.ok()) return status;
      }
      if (absl::Status status = (*builder)->Finish(); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status WriteBlock(int thread, DiskFileBuilder* builder) {
    const uint64_t number = next_number_.fetch_add(1);
    Written written{.key = SpillKey(number), .place = {}, .digests = {}};
    written.digests = DigestsOf(map_, written.key, payload_);
    DiskRecord record;
    record.block.key = written.key;
    record.block.sequence = number;
    record.block.payload_bytes = kBlockBytes;
    record.scope = &scope_;
    record.digests = written.digests;
    record.payload = payload_;
    const absl::StatusOr<DiskPlace> place = builder->Add(record);
    if (!place.ok()) return place.status();
    written.place = *place;
    written_[static_cast<size_t>(thread)].push_back(std::move(written));
    return absl::OkStatus();
  }

  absl::Status ReadBlocks(const std::vector<const Written*>& all, std::atomic<size_t>* next) {
    std::vector<uint8_t> bytes(kBlockBytes);
    for (size_t i = next->fetch_add(1); i < all.size(); i = next->fetch_add(1)) {
      const Written& block = *all[i];
      absl::Status status = tier_->Read(block.place, block.key, absl::MakeSpan(bytes), nullptr);
      if (!status.ok()) return status;
      if (DigestsOf(map_, block.key, bytes) != block.digests) {
        return absl::DataLossError("a block came back with other bytes");
      }
    }
    return absl::OkStatus();
  }

  RocksDbDiskTier* const tier_;
  const Namespace name_space_;
  const DiskScope scope_;
  const PayloadMap map_;
  std::vector<uint8_t> payload_;
  std::atomic<uint64_t> next_number_{1};
  std::vector<std::vector<Written>> written_;  // By thread.
};

// One figure in turns with its floor: the median of the rounds' ratios.
struct Rounds {
  std::vector<double> ratios;
  std::vector<double> speeds;
  std::vector<double> floors;

  void Add(double seconds, double floor) {
    speeds.push_back(static_cast<double>(kTransferBytes) / seconds);
    floors.push_back(floor);
    ratios.push_back(speeds.back() / floor);
  }
  void Report(absl::string_view what, JsonReport* report) const {
    report->Add(absl::StrCat(what, "_bytes_per_second"), Median(speeds));
    report->Add(absl::StrCat("fio_", what, "_bytes_per_second"), Median(floors));
    report->Add(absl::StrCat(what, "_ratio_to_fio"), Median(ratios));
  }
};

}  // namespace

absl::Status MeasureTransfer(const std::string& dir, JsonReport* report) {
  absl::StatusOr<std::unique_ptr<RocksDbDiskTier>> tier = RocksDbDiskTier::Open(
      {.directory = dir + "/transfer", .bytes_max = kTransferDisk, .file_system = nullptr});
  if (!tier.ok()) return tier.status();
  Transfer transfer(tier->get());
  std::ofstream("/proc/self/clear_refs") << "5";  // The high-water mark begins here.
  const uint64_t before_kib = OfProcess("status", "VmRSS:");
  Rounds writes;
  Rounds reads;
  for (int round = 0; round < kRounds; ++round) {
    FioJob job{.dir = dir,
               .rw = "write",
               .bytes = kTransferBytes,
               .block_bytes = kBlockBytes,
               .depth = kDepth};
    absl::StatusOr<double> floor = FioBytesPerSecond(job);
    if (!floor.ok()) return floor.status();
    absl::StatusOr<double> seconds = transfer.Write();
    if (!seconds.ok()) return seconds.status();
    writes.Add(*seconds, *floor);
    job.rw = "randread";
    floor = FioBytesPerSecond(job);
    if (!floor.ok()) return floor.status();
    seconds = transfer.Read();
    if (!seconds.ok()) return seconds.status();
    reads.Add(*seconds, *floor);
  }
  writes.Report("write", report);
  reads.Report("read", report);
  const uint64_t peak_kib = OfProcess("status", "VmHWM:");
  report->Add("memory_bytes_max", 1024.0 * static_cast<double>(peak_kib - before_kib));
  return absl::OkStatus();
}

}  // namespace cairn::bench
