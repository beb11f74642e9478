// SequenceSeal, SealTask, SealOutcome: a block of a sequence on its way into the store.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "cache_node/decode/sequence/page_ref.h"
#include "cache_node/decode/sequence/page_reservation.h"
#include "common/base/bytes16.h"
#include "common/identity/extra.h"
#include "common/identity/key_chain.h"
#include "common/identity/payload_map.h"
#include "common/identity/scope.h"

namespace cairn::node {

class Sequence;

// What came of a block that was to be published.
enum class SealOutcome : uint8_t {
  kSealed = 0,
  kThere = 1,          // Somebody had written it already.
  kInProgress = 2,     // Somebody else writes it, or blocks were removed: asked again later.
  kNoSpace = 3,        // Or over a quota: likewise.
  kDeclined = 4,       // No tier wants it, so none of what follows it.
  kParentMissing = 5,  // The block before it is not here, so what follows cannot be.
  kRefused = 6,        // For another reason: the namespace is gone, a write failed.
};
inline constexpr size_t kSealOutcomes = 7;

// All that publishing needs. The page's bytes stay as they are until the task is finished.
struct SealTask {
  uint64_t serial = 0;
  std::string tenant;
  uint64_t writer = 0;  // Of the provenance.
  Fingerprint fingerprint;
  uint64_t epoch = 0;  // Of the namespace's registration that the rows belong to.
  const PayloadMap* map = nullptr;
  KeyRules rules;
  Scope scope;
  std::optional<BlockKey> region_parent;  // As of ReserveFields, like what follows.
  std::optional<BlockKey> parent;
  BlockKey key;
  std::vector<uint32_t> tokens;
  std::vector<ExtraItem> extra;
  std::string external_id;
  absl::Span<const std::byte> page;
  std::vector<size_t> parts;  // Of the map, that are full: all required ones, and maybe others.
  // It is published only while `*revocations` is what it was: behind a clear, nobody expects what
  // was full before.
  const std::atomic<uint64_t>* revocations = nullptr;
  uint64_t revocations_then = 0;
};

// The table's side of a task that is under way.
struct SequenceSeal {
  Sequence* sequence = nullptr;  // Null: it has ended.
  uint32_t block = 0;
  bool stale = false;  // The sequence has other tokens there now.
  PageRef page;
  // Of one page, for the sequence to write on in a copy. Taken by the sequence when it needs it.
  PageReservation spare;
};

}  // namespace cairn::node
