// MemoryDiskTier: a DiskTier (fake) whose disk is memory and fails by script.
//
// Correct as the contract says: durable when answered, unfinished files leave nothing, a record is
// of its key and size or DATA_LOSS. Health follows the same rules as the product's (disk_health.h).
// Kill makes it what a process finds that starts after kill -9: one object stands for the disk
// through any number of lives.
//
// Thread-safe but for its builders, which must not outlive it. Nothing waits, but for the hook.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "cache_node/tiers/disk/disk_health.h"
#include "cache_node/tiers/disk/disk_tier.h"

namespace cairn::testing {

enum class DiskCall : uint8_t {
  kStartFile,
  kAdd,
  kFinish,
  kRead,
  kDropFile,
  kRecover,
  kReadLedger,
  kPutNamespace,
  kPutFence,
  kMarkDead,
  kProbe,
  kPruneFences,
};
inline constexpr size_t kDiskCalls = 12;

class MemoryDiskTier final : public node::DiskTier {
 public:
  static constexpr int kUntilHealed = -1;
  // What a record takes beside its payload, digests, tokens and extra.
  static constexpr uint64_t kRecordBytesBeside = 200;

  explicit MemoryDiskTier(uint64_t bytes_max);
  ~MemoryDiskTier() override;

  absl::StatusOr<std::unique_ptr<node::DiskFileBuilder>> StartFile() override;
  absl::Status Read(node::DiskPlace place, const BlockKey& key, absl::Span<uint8_t> payload,
                    node::DiskRecordFields* fields) override;
  absl::Status DropFile(uint64_t file) override;
  absl::Status Recover(const std::function<bool(RecoveredFile)>& visit) override;
  absl::StatusOr<Ledger> ReadLedger() override;
  absl::Status PutNamespace(const KnownNamespace& known) override;
  absl::Status PutFence(const Fence& fence) override;
  absl::Status PruneFences(uint64_t below, size_t fences_max) override;
  absl::Status MarkDead(absl::Span<const node::DiskPlace> places) override;
  Stats GetStats() const override;
  absl::Status Probe() override;

  // --- The script ---
  // The next `times` of these calls (or all until Heal) do nothing and answer `status`, which
  // counts for health as the device's own would: UNAVAILABLE an I/O error, RESOURCE_EXHAUSTED a
  // full disk. A call that is not admitted does not reach the script.
  void Fail(DiskCall call, absl::Status status, int times = 1);
  void Heal();
  // Called at the start of each call, on its thread, under no lock: it may wait, move a clock, or
  // call the tier itself.
  void SetHook(std::function<void(DiskCall)> hook);
  // Reads of this record, or of all of this file, answer DATA_LOSS; Recover drops a damaged file.
  void Damage(node::DiskPlace place);
  void DamageFile(uint64_t file);
  // As if somebody deleted it under the tier: reads answer NOT_FOUND, Recover does not see it.
  void LoseFile(uint64_t file);
  void SetBytesMax(uint64_t bytes_max);
  // The process dies and starts again: builders of before answer UNAVAILABLE, health and counters
  // are new, Recover visits what was finished.
  void Kill();

  // Calls that reached the disk since the start, scripted failures included.
  uint64_t calls(DiskCall call) const;
  // Files that are there, oldest first.
  std::vector<uint64_t> files() const;

 private:
  class Builder;

  struct StoredRecord {
    node::DiskRecordFields fields;
    std::vector<uint8_t> payload;
    bool damaged = false;
  };
  struct StoredFile {
    uint64_t bytes = 0;
    uint64_t life = 0;  // In which it was written.
    bool damaged = false;
    std::vector<StoredRecord> records;
  };
  struct Script {
    absl::Status status;
    int times = 0;
  };
  // Fingerprint, tenant, scope digest: a fence replaces an earlier one of the same.
  using FenceId = std::tuple<Fingerprint, std::string, BlockKey>;

  // Counts the call, runs the hook, then says what the script says.
  absl::Status Enter(DiskCall call) ABSL_LOCKS_EXCLUDED(mutex_);
  // The same for a call that any health but failing admits, and whose failure is a write's.
  absl::Status EnterSmallWrite(DiskCall call) ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t life() const ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteWrite(uint64_t life, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Reserve(uint64_t life, uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  void Release(uint64_t life, uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Keep(uint64_t file, StoredFile stored) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status ReadStored(node::DiskPlace place, const BlockKey& key, absl::Span<uint8_t> payload,
                          node::DiskRecordFields* fields) ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<RecoveredFile> Recovered(uint64_t file) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckRoom(uint64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Erase(uint64_t file) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  node::DiskHealth health_;

  mutable absl::Mutex mutex_;
  std::function<void(DiskCall)> hook_ ABSL_GUARDED_BY(mutex_);
  std::array<Script, kDiskCalls> script_ ABSL_GUARDED_BY(mutex_);
  std::array<uint64_t, kDiskCalls> calls_ ABSL_GUARDED_BY(mutex_){};
  uint64_t life_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t next_file_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t reserved_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // Of files being built.
  std::map<uint64_t, StoredFile> files_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<uint64_t, uint32_t>> dead_ ABSL_GUARDED_BY(mutex_);     // File, slot.
  std::map<std::pair<std::string, std::string>, KnownNamespace> namespaces_  // By tenant and name.
      ABSL_GUARDED_BY(mutex_);
  std::map<FenceId, Fence> fences_ ABSL_GUARDED_BY(mutex_);
  uint64_t dead_up_to_ ABSL_GUARDED_BY(mutex_) = 0;
  Stats stats_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn::testing
