// Two million small blocks are found again after a kill, with nothing of them in the page cache.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "tests/bench/disk_rig.h"
#include "tests/bench/spill_parts.h"

namespace cairn::bench {
namespace {

using node::DiskFileBuilder;
using node::DiskRecord;
using node::DiskScope;
using node::RocksDbDiskTier;

constexpr uint64_t kSmallBlocks = 2'000'000;
constexpr uint64_t kSmallBytes = 256;
constexpr uint64_t kSmallPerFile = 250'000;
constexpr uint64_t kSmallDisk = uint64_t{4} << 30;
constexpr uint64_t kSmallFileBytes = uint64_t{256} << 20;

// The child: writes all, and is killed without a word.
void WriteSmallBlocks(const std::string& dir, const Namespace& name_space) {
  const DiskScope scope = PublicScope(name_space);
  const PayloadMap map = *PayloadMap::Make(name_space.layout);
  auto tier =
      RocksDbDiskTier::Open({.directory = dir, .bytes_max = kSmallDisk, .file_system = nullptr});
  if (!tier.ok()) _exit(1);
  if (!(*tier)->PutNamespace({scope.tenant, "small", name_space}).ok()) _exit(1);
  std::vector<uint8_t> payload(kSmallBytes);
  std::unique_ptr<DiskFileBuilder> builder;
  for (uint64_t number = 0; number < kSmallBlocks; ++number) {
    if (builder == nullptr) builder = *(*tier)->StartFile();
    DiskRecord record;
    record.block.key = SpillKey(number);
    record.block.sequence = number + 1;
    record.block.payload_bytes = kSmallBytes;
    record.scope = &scope;
    std::fill(payload.begin(), payload.end(), static_cast<uint8_t>(number));
    const std::vector<uint64_t> digests = DigestsOf(map, record.block.key, payload);
    record.digests = digests;
    record.payload = payload;
    if (!builder->Add(record).ok()) _exit(1);
    if ((number + 1) % kSmallPerFile != 0) continue;
    if (!builder->Finish().ok()) _exit(1);
    builder.reset();
  }
  kill(getpid(), SIGKILL);
}

// Its bytes, loaded through a slot, are those that were written.
absl::Status CheckFound(DiskRig* rig, const Fingerprint& fingerprint, uint64_t number) {
  node::LookupQuery query;
  query.prompts.push_back({.keys = {SpillKey(number)}});
  query.promote = true;
  if (rig->store().Lookup(node::kPublicTenant, fingerprint, query).prompts[0].blocks[0].state ==
      node::BlockState::kNeverSeen) {
    return absl::DataLossError("a block that was on disk was not found again");
  }
  while (rig->loader().Step()) {
  }
  const auto pinned = rig->store().PinForRead(node::kPublicTenant, fingerprint, std::nullopt,
                                              query.prompts[0].keys[0]);
  if (!pinned.ok()) return pinned.status();
  if (!pinned->pin) return absl::DataLossError("a block that was on disk was not loaded");
  for (const uint8_t byte : pinned->pin.bytes()) {
    if (byte != static_cast<uint8_t>(number)) return absl::DataLossError("wrong bytes");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasureRecovery(const std::string& dir, JsonReport* report) {
  const Namespace name_space = SpillNamespace(1, 1, 4);
  CAIRN_CHECK(PayloadMap::Make(name_space.layout)->block_bytes() == kSmallBytes);
  const std::string folder = dir + "/recovery";
  const pid_t child = fork();
  if (child == 0) WriteSmallBlocks(folder, name_space);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFSIGNALED(status)) {
    return absl::InternalError("the child that writes small blocks failed");
  }
  sync();
  std::ofstream drop("/proc/sys/vm/drop_caches");
  report->Add("page_cache_dropped", drop << "3" << std::flush ? 1.0 : 0.0);
  const absl::Time began = SystemClock().SteadyNow();
  absl::StatusOr<std::unique_ptr<DiskRig>> rig = DiskRig::Open({.dir = folder,
                                                                .disk_bytes = kSmallDisk,
                                                                .pool_bytes = uint64_t{1} << 20,
                                                                .file_bytes = kSmallFileBytes});
  if (!rig.ok()) return rig.status();
  if (absl::Status recovered = (*rig)->Recover(); !recovered.ok()) return recovered;
  const Fingerprint fingerprint = PublicScope(name_space).fingerprint;
  absl::Status found = CheckFound(rig->get(), fingerprint, kSmallBlocks - 1);
  const double seconds = SecondsSince(began);
  for (uint64_t number = 0; number < kSmallBlocks && found.ok(); number += kSmallBlocks / 997) {
    found = CheckFound(rig->get(), fingerprint, number);
  }
  if (!found.ok()) return found;
  if ((*rig)->store().Status().disk_blocks != kSmallBlocks) {
    return absl::DataLossError("not all blocks were found again");
  }
  report->Add("recovered_blocks_per_second", static_cast<double>(kSmallBlocks) / seconds);
  return absl::OkStatus();
}

}  // namespace cairn::bench
