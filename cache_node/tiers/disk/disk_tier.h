// DiskTier: blocks in files on one disk, written once, read by place, dropped file by file.
//
// It knows bytes and files, not which block matters: the store decides what is spilled, loaded,
// dropped and written again. Payload goes into sorted files that are built whole and then ingested
// (nothing of it passes a memtable); what must never be forgotten (namespaces, fences, dead
// records) goes into a small synced log. A block is there when the file that holds it was finished;
// a file that was not finished leaves nothing.
//
// Never lies: a record is answered only when its checksum, its key and its lengths agree with what
// was asked; anything else is DATA_LOSS, and nothing of the destination may be used. What another
// version or layout wrote is skipped, never misread.
//
// Thread-safe. Every call but those marked "cheap" may block on the disk: call it on threads of its
// own, under no lock. Errors: DATA_LOSS a record or file is damaged (the caller forgets it);
// NOT_FOUND the file is gone; RESOURCE_EXHAUSTED the disk or the cap is full, nothing was kept;
// UNAVAILABLE the device failed. After any of them the tier can be used again, without a restart.
//
// An interface, so that the store and the simulator run over memory (tests/testing) as well.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cache_node/tiers/disk/disk_types.h"
#include "common/identity/namespace.h"

namespace cairn::node {

// One file being built. Not thread-safe; several may be built at a time. Destroyed unfinished, it
// leaves nothing behind.
class DiskFileBuilder {
 public:
  virtual ~DiskFileBuilder() = default;

  virtual uint64_t file() const = 0;
  // The bytes are copied, or written, before it answers.
  virtual absl::StatusOr<DiskPlace> Add(const DiskRecord& record) = 0;
  virtual uint64_t bytes() const = 0;  // So far, all that it will take on disk. Cheap.
  // Makes it durable and readable. On an error none of its records is there.
  virtual absl::Status Finish() = 0;
};

class DiskTier {
 public:
  virtual ~DiskTier() = default;

  // --- Files ---
  virtual absl::StatusOr<std::unique_ptr<DiskFileBuilder>> StartFile() = 0;

  // Reads one record: the payload into `payload`, which must have its exact size, the rest into
  // `fields` (may be null). The record must be of `key`.
  virtual absl::Status Read(DiskPlace place, const BlockKey& key, absl::Span<uint8_t> payload,
                            DiskRecordFields* fields) = 0;

  // The file's space is free again. OK when it is gone already.
  virtual absl::Status DropFile(uint64_t file) = 0;

  // --- Start ---
  struct RecoveredFile {
    uint64_t file = 0;
    uint64_t bytes = 0;
    std::vector<DiskScope> scopes;
    struct Entry {
      uint32_t scope = 0;  // In `scopes`.
      DiskBlock block;
      bool dead = false;  // MarkDead said so.
    };
    std::vector<Entry> entries;  // By slot.
  };
  // Visits the files that were there when the tier was opened and are still, oldest first, one at a
  // time; the tier serves meanwhile, and what is finished meanwhile is not visited. Stops early
  // when `visit` answers false. Damaged or foreign files are dropped, counted, not visited.
  virtual absl::Status Recover(const std::function<bool(RecoveredFile)>& visit) = 0;

  // --- What is never forgotten: durable when the call has answered ---
  struct KnownNamespace {
    std::string tenant;
    std::string name;
    Namespace fields;
  };
  // Everything written into files with a sequence up to `sequence` is dead: of the whole namespace
  // (tenant empty), or of one scope of one tenant.
  struct Fence {
    Fingerprint fingerprint;
    std::string tenant;
    BlockKey scope_digest;
    uint64_t sequence = 0;
    uint64_t epoch = 0;  // Of the namespace from now on; only of a whole namespace.

    friend bool operator==(const Fence&, const Fence&) = default;
  };
  struct Ledger {
    std::vector<KnownNamespace> namespaces;
    std::vector<Fence> fences;
    uint64_t dead_up_to = 0;  // Everything written with a sequence up to it is dead.
  };
  virtual absl::StatusOr<Ledger> ReadLedger() = 0;
  virtual absl::Status PutNamespace(const KnownNamespace& known) = 0;
  // Takes the labels' place of a retired namespace as well: they are forgotten.
  virtual absl::Status PutFence(const Fence& fence) = 0;
  // No record has a sequence below `below`, nor ever will: fences below it are not needed, and go.
  // Those of namespaces stay for their epochs as long as not more than `fences_max` are left; of
  // more the oldest go, and where they are still needed Ledger::dead_up_to covers them.
  virtual absl::Status PruneFences(uint64_t below, size_t fences_max) = 0;
  // These records are not to be seen after a restart either. Also places that Add has answered of a
  // file that is not finished yet: should it be finished, they are dead in it.
  virtual absl::Status MarkDead(absl::Span<const DiskPlace> places) = 0;

  // --- State ---
  enum class Health : uint8_t {
    kServing,
    kFull,     // Refuses writes for want of room; reads.
    kFailing,  // Taken out after errors; Probe may take it in again.
  };
  struct Stats {
    Health health = Health::kServing;
    std::string reason;  // Of a health that is not kServing; said to people.
    uint64_t bytes_used = 0;
    uint64_t bytes_max = 0;
    uint64_t files = 0;
    uint64_t written_bytes = 0;
    uint64_t read_bytes = 0;
    uint64_t read_errors = 0;
    uint64_t write_errors = 0;
    uint64_t damaged_records = 0;
    uint64_t damaged_files = 0;
  };
  virtual Stats GetStats() const = 0;  // Cheap.
  // A small write and read back: takes a full or failing tier in again when both succeed.
  virtual absl::Status Probe() = 0;
};

}  // namespace cairn::node
