// BlockEntry: one block of the store, from its reservation until its slot is free again.
//
// Lives until it has left the index and nothing holds it (no pin, no claim); then its slot is freed
// and its charge given back. All fields are under the store's lock, except those marked "any
// thread", which a holder of a pin reads, and the bytes of the slot.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cache_node/store/disk_files.h"
#include "cache_node/store/eviction_policy.h"
#include "cache_node/store/removed_ring.h"
#include "cache_node/store/retention.h"
#include "cache_node/store/tenant_ledger.h"
#include "cache_node/tiers/provenance.h"
#include "cache_node/tiers/slot_class.h"
#include "common/base/bytes16.h"
#include "common/identity/payload_map.h"

namespace cairn::node {

struct ClassSpace;
class EntryQueue;
struct Family;
struct LeaseLink;
struct NamespaceRecord;
struct ScopeList;
struct Token;

// A segment on its way: claimed by a writer, then in with a checked digest, then committed.
enum class SegmentState : uint8_t { kEmpty, kClaimed, kWritten, kCommitted };

struct BlockEntry {
  // All but gone entries are in the index; a gone one only waits for its holders. A reserved one
  // waits for its writer, a loading one for its bytes from disk.
  enum class Life : uint8_t { kReserved, kLoading, kPresent, kGone };

  // `tokens` may be empty. The map outlives the entry.
  BlockEntry(const PayloadMap& map_in, absl::Span<const uint32_t> tokens_in);

  BlockEntry(const BlockEntry&) = delete;
  BlockEntry& operator=(const BlockEntry&) = delete;

  // What an entry takes besides its slot: itself, its arrays, and its share of the containers.
  static uint64_t IndexBytes(const PayloadMap& map, size_t tokens);

  uint64_t block_bytes() const { return map->block_bytes(); }
  bool held() const { return pins > 0 || claims > 0; }
  bool stays() const { return stays_until_unix_ms != 0; }
  // Present, and no child within its partition, no holder and no wish that it stays: eviction may
  // take it.
  bool MayGo() const;
  bool HasTokens() const { return tokens != nullptr; }
  bool SameTokens(absl::Span<const uint32_t> others) const;
  // Any thread that holds a pin: the segment's part is committed whole.
  bool SegmentPresent(size_t segment) const;
  // Any thread that holds a pin.
  bool Readable() const;

  const PayloadMap* const map;
  BlockKey key;
  PartitionIndex partition = 0;
  NamespaceRecord* name_space = nullptr;
  uint64_t epoch = 0;  // Of the namespace, when reserved.
  Life life = Life::kReserved;
  bool loaded = false;     // It came from disk, and no writer reserved it.
  bool from_disk = false;  // It was loaded from there, and not used since.
  bool from_device = false;
  uint32_t depth = 0;
  absl::Time reserved_at;
  UseStamp stamp = 0;
  Retention retention;
  int64_t stays_until_unix_ms = 0;  // Wall clock; 0: it may go like any other (store_stays.cc).
  Provenance provenance;
  uint64_t index_bytes = 0;
  std::unique_ptr<uint32_t[]> tokens;  // block_tokens of them, or null.

  std::unique_ptr<SegmentState[]> segments;
  std::unique_ptr<uint64_t[]> digests;                        // Any thread, where SegmentPresent.
  std::unique_ptr<std::atomic<uint32_t>[]> layers_committed;  // By part. Any thread.
  size_t required_parts_missing = 0;

  SlotRef slot;
  TenantLedger::Charge charge;
  ClassSpace* space = nullptr;
  BlockHandle handle = 0;
  bool counts_as_held = false;  // In its memory segment's count (slot_space.h).

  uint32_t pins = 0;  // Of readers, with those of leases.
  uint32_t lease_pins = 0;
  uint32_t claims = 0;               // Of writers.
  std::atomic<bool> revoked{false};  // Any thread. Removed by someone's will, not to make room.
  LeaseLink* leases = nullptr;

  // Family: the children of one parent (block_families.h).
  Family* family = nullptr;    // Among whose children it is; null for a prompt's first block.
  Family* children = nullptr;  // Those of which it is the parent.
  BlockEntry* family_previous = nullptr;
  BlockEntry* family_next = nullptr;
  bool orphan = false;  // Some block before it is not there.

  ScopeList* scope = nullptr;
  BlockEntry* scope_previous = nullptr;
  BlockEntry* scope_next = nullptr;

  DiskHandle disk = 0;            // Where it is on disk too.
  bool spilling = false;          // A mover is writing it.
  DiskHandle device = 0;          // Where it is on the device too.
  bool uploading = false;         // A mover is copying it there.
  bool wanted_on_device = false;  // It waits for one.
  bool used = false;              // Since it came to host memory.
  EntryQueue* queue = nullptr;
  BlockEntry* queue_previous = nullptr;
  BlockEntry* queue_next = nullptr;

  Token* token = nullptr;  // That reserved it, as long as that token lives.
  uint32_t token_block = 0;
};

}  // namespace cairn::node
