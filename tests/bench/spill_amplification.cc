// What is written in all for what was stored, over three times the disk's cap.
#include "tests/bench/disk_rig.h"
#include "tests/bench/spill_parts.h"
#include "tests/bench/store_load.h"

namespace cairn::bench {
namespace {

using node::RocksDbDiskTier;

constexpr uint64_t kCap = uint64_t{1} << 30;
constexpr uint64_t kCapsWritten = 3;
constexpr uint64_t kCapFileBytes = kCap / 16;
constexpr int kReadAgainOneIn = 8;  // Of prompts: those are hot.

}  // namespace

// Over three times the cap through a small pool, with prompts that are read again.
absl::Status MeasureAmplification(const std::string& dir, JsonReport* report) {
  absl::StatusOr<std::unique_ptr<DiskRig>> rig =
      DiskRig::Open({.dir = dir + "/cap",
                     .disk_bytes = kCap + RocksDbDiskTier::kOverheadBytes,
                     .pool_bytes = uint64_t{512} << 20,
                     .file_bytes = kCapFileBytes});
  if (!rig.ok()) return rig.status();
  if (absl::Status status = (*rig)->Recover(); !status.ok()) return status;
  node::BlockStore& store = (*rig)->store();
  const auto registered =
      store.RegisterNamespace(node::kPublicTenant, "cap", SpillNamespace(32, 8, 128));
  if (!registered.ok()) return registered.status();
  StoreLoad load(&store, registered->fingerprint);
  const uint64_t before = OfProcess("io", "write_bytes:");
  std::vector<node::PromptQuery> hot;
  for (int prompt = 0; (*rig)->counters().spilled_bytes.load() < kCapsWritten * kCap; ++prompt) {
    const absl::StatusOr<std::vector<BlockKey>> keys = load.PutPrompt();
    if (!keys.ok()) return keys.status();
    if (prompt % kReadAgainOneIn == 0) hot.push_back({.keys = *keys});
    (*rig)->Settle();
    node::LookupQuery again;
    again.touch = true;
    again.prompts = {hot[static_cast<size_t>(prompt) % hot.size()]};
    store.Lookup(node::kPublicTenant, registered->fingerprint, again);
  }
  (*rig)->Flush();
  const double written = static_cast<double>(OfProcess("io", "write_bytes:") - before);
  const node::StoreCounters& counters = (*rig)->counters();
  const double payload = static_cast<double>(counters.spilled_bytes.load());
  report->Add("spilled_payload_bytes", payload);
  report->Add("reinserted_payload_bytes", static_cast<double>(counters.reinserted_bytes.load()));
  report->Add("reclaimed_files", static_cast<double>(counters.reclaimed_files.load()));
  report->Add("bytes_written_over_payload", written / payload);
  return absl::OkStatus();
}

}  // namespace cairn::bench
