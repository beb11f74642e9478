// Questions to and answers of the BlockStore, as plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cache_node/store/feed_source.h"
#include "cache_node/store/retention.h"
#include "cache_node/tiers/provenance.h"
#include "common/base/bytes16.h"
#include "common/identity/namespace.h"
#include "common/identity/payload_map.h"

namespace cairn::node {

// What a node says of one block. The numbers are those of cairn.v1.BlockState.
enum class BlockState : uint8_t {
  kDevice = 1,
  kHost = 2,
  kDisk = 3,
  kPending = 4,
  kNeverSeen = 5,
  kEvicted = 6,
  kQuarantined = 7,
  kLoadFailed = 8,
  kDeleted = 9,
  kTokensDiffer = 10,
  kNamespaceUnknown = 11,
  kNotLeased = 12,
};

struct BlockAnswer {
  BlockState state = BlockState::kNeverSeen;
  // kPending: since it was reserved or its load began.
  absl::Duration pending_for = absl::ZeroDuration();
  // kHost: it was loaded from there, and not used since.
  bool from_disk = false;
  bool from_device = false;
};

// A prompt as keys of its full blocks. `tokens`, when not empty, are those blocks' tokens
// (keys.size() * block_tokens of them) and are compared with the stored ones.
struct PromptQuery {
  std::vector<BlockKey> keys;
  std::vector<uint32_t> tokens = {};
};

struct LeaseWish {
  uint32_t readers = 1;
  absl::Duration ttl;  // Zero takes the default.
};

struct LookupQuery {
  std::vector<PromptQuery> prompts;
  std::optional<LeaseWish> lease = std::nullopt;
  bool touch = false;   // Without a lease: counts as a use.
  bool counted = true;  // False: a probe of a call that waits; raises no lookup counters.
  // Blocks that are only on the device or on disk are to be loaded, as far as there is room: they
  // are kPending until they are in host memory or have failed. A lease asks for it by itself.
  bool promote = false;
  // With a lease, for a caller that waits: the lease also holds the blocks that are being loaded
  // (so `leased` may exceed `present`), and the answer is asked for again with `resume`, the lease
  // of the answer before, until nothing is pending. The last time without hold_pending: the lease
  // is then cut to what is in host memory.
  bool hold_pending = false;
  std::optional<LeaseId> resume = std::nullopt;
  bool resident_only = false;  // Nothing is loaded, though a lease asks for it.
};

struct PromptAnswer {
  std::vector<BlockAnswer> blocks;  // One a key.
  uint32_t present = 0;             // Consecutive, from the start, in whatever tiers.
  uint32_t leased = 0;              // Consecutive, in host memory (or pending: hold_pending).
};

struct LookupAnswer {
  bool namespace_known = false;
  uint32_t block_tokens = 0;
  std::vector<PromptAnswer> prompts;
  std::optional<LeaseId> lease;
  absl::Duration lease_ttl;
};

struct LeaseStatus {
  Fingerprint fingerprint;  // Of the lookup.
  uint32_t readers = 0;
  uint32_t readers_ended = 0;
  std::vector<uint32_t> usable_blocks;  // By prompt.
  bool complete = false;
};

// Outcomes of a reserve for one block. The numbers are those of cairn.v1.ReserveOutcome.
enum class ReserveOutcome : uint8_t {
  kUndecided = 0,  // Beyond the first block that was refused.
  kReserved = 1,
  kPresent = 2,
  kInProgress = 3,
  kNoSpace = 4,
  kQuota = 5,
  kDeclined = 6,
  kParentMissing = 7,
  kKeyMismatch = 8,
};

// Blocks to reserve, consecutive in one prompt. Keys were recomputed by the caller of the store
// (see reserve_plan.h): `mismatch_at` is the first whose key is another.
struct ReserveQuery {
  BlockKey scope_digest;           // Whose blocks these are within the partition (scope_digest.h).
  std::optional<BlockKey> parent;  // Block before the first one; none: the prompt's first block.
  // The first block is the first of its scope, so its parent may be of another scope, and public.
  // False: the parent is a block of this very scope.
  bool enters_scope = true;
  std::string adapter = {};      // Of the scope, and
  std::string salt = {};         // kept with the blocks on disk.
  std::vector<BlockKey> keys;    // 1 to kBlocksPerReserveMax, no duplicates.
  std::vector<uint32_t> tokens;  // keys.size() * block_tokens, or empty.
  std::optional<size_t> mismatch_at;
  absl::Duration ttl;  // Of the token. Zero takes the default.
  // Both of all blocks.
  Retention retention = {};
  Provenance provenance = {};
  // They, and those that are there already, are to stay until then. Wall clock; 0: no wish.
  int64_t stays_until_unix_ms = 0;
};

struct ReserveAnswer {
  std::optional<TokenId> token;
  std::vector<ReserveOutcome> outcomes;         // One a key.
  std::vector<absl::Duration> in_progress_for;  // One a key; only of kInProgress.
  std::vector<StayOutcome> stays;               // One a key.
  absl::Duration retry_after;                   // Of kNoSpace and kQuota.
  absl::Duration token_ttl;
};

// Consecutive layers of one part of a reservation's block, with their digests.
struct SegmentRun {
  uint32_t block = 0;  // Index in the reservation's keys.
  uint32_t group = 0;
  uint32_t slice = 0;
  uint32_t layer = 0;
  absl::InlinedVector<uint64_t, 4> digests;  // One a layer.
};

// Layers that a commit still misses.
struct MissingRun {
  uint32_t block = 0;
  uint32_t group = 0;
  uint32_t slice = 0;
  uint32_t layer = 0;
  uint32_t layers = 0;
};

struct CommitAnswer {
  uint32_t blocks_present = 0;
  std::vector<MissingRun> missing;  // At most kMissingRunsMax.
  bool complete = false;
  // By index of the run in the call; refused ones only.
  std::vector<std::pair<uint32_t, absl::Status>> errors;
};

// One piece of a Write frame.
struct WritePiece {
  SegmentRun run;
  uint32_t offset = 0;  // Within the segment; not 0 or short only with one digest.
  uint32_t length = 0;
  // The digests are not known before the bytes are where they go (LandStaged): whole segments only,
  // and run.digests says no more than how many.
  bool unhashed = false;
};

struct RegisteredNamespace {
  Fingerprint fingerprint;
  bool created = false;
  uint64_t block_bytes = 0;
};

struct RemovedBlocks {
  uint64_t epoch = 0;  // Of a retirement.
  uint64_t blocks = 0;
  uint64_t pinned_bytes = 0;
};

struct NamespaceStatus {
  Fingerprint fingerprint;
  std::string name;
  std::string model;
  uint32_t block_tokens = 0;
  uint64_t block_bytes = 0;
  uint64_t blocks = 0;         // In host memory.
  uint64_t disk_blocks = 0;    // On disk, in host memory or not.
  uint64_t device_blocks = 0;  // Likewise.
};

struct TenantStatus {
  std::string tenant;
  uint64_t charged_bytes = 0;
  uint64_t disk_bytes = 0;
  uint64_t device_bytes = 0;
  uint64_t leased_bytes = 0;
  uint64_t reserved_bytes = 0;
  uint64_t stays_bytes = 0;
};

struct StoreStatus {
  uint64_t host_bytes = 0;
  uint64_t host_used_bytes = 0;
  uint64_t pinned_bytes = 0;
  uint64_t reserved_bytes = 0;
  uint64_t stays_bytes = 0;
  uint64_t index_bytes = 0;
  uint64_t blocks = 0;
  uint64_t pins = 0;
  uint32_t leases = 0;
  uint32_t tokens = 0;
  uint32_t watchers = 0;
  // Of the disk tier; all 0 without one.
  bool recovering = false;  // Blocks that are on disk are still being found again.
  uint64_t disk_blocks = 0;
  uint64_t disk_payload_bytes = 0;
  uint64_t disk_index_bytes = 0;
  uint64_t disk_files = 0;
  uint64_t spill_queue_blocks = 0;
  uint64_t spill_queue_bytes = 0;
  uint64_t missed_spill_blocks = 0;  // In host memory; their write failed, and is tried again.
  uint64_t loads = 0;                // Blocks that are pending for a load, from the device too.
  // Of the device; all 0 without one.
  bool device_failed = false;  // It is out.
  uint64_t device_blocks = 0;
  uint64_t device_bytes = 0;       // Of its pool.
  uint64_t device_used_bytes = 0;  // Of slots that are held.
  uint64_t device_index_bytes = 0;
  uint64_t wanted_blocks = 0;  // That wait to be copied there.
};

}  // namespace cairn::node
