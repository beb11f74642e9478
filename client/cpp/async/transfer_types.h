// What an engine asks of its asynchronous transfers, and what it hears of them. Values; those that
// hold a lease or a session only move.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/cpp/get_result.h"
#include "client/cpp/lookup_types.h"
#include "client/cpp/namespace_handle.h"
#include "client/cpp/prompt.h"
#include "client/cpp/put_types.h"
#include "client/cpp/read_lease.h"
#include "client/cpp/segment_selection.h"
#include "client/cpp/write_session.h"
#include "common/base/bytes16.h"

namespace cairn {

// Of one AsyncTransfers, never used again.
enum class TransferId : uint64_t {};

// Layers that become usable together. A transfer goes through its steps in order, one call each.
struct LayerStep {
  std::vector<PartLayers> parts;
  // Of a load: only so many of the last blocks, as attention over a window needs; 0: all.
  uint32_t window_blocks = 0;

  friend bool operator==(const LayerStep&, const LayerStep&) = default;
};

// CacheNodeClient::Lookup. What the prompts borrow stays where it is until the result was polled.
struct LookupTransfer {
  NamespaceHandle name_space;
  std::vector<Prompt> prompts;
  LookupOptions options = {};
};

// CacheNodeClient::GetLease: waits for all readers of a lease.
struct LeaseTransfer {
  LeaseId lease;
  absl::Duration wait = absl::ZeroDuration();
};

// CacheNodeClient::Reserve. The session of the result can be stored by a StoreTransfer, and its
// ticket given to other ranks. What the prompt borrows stays until the result was polled.
struct ReserveTransfer {
  NamespaceHandle name_space;
  Prompt prompt;
  size_t first_block = 0;
  size_t blocks = 0;
  ReserveOptions options = {};
};

// CacheNodeClient::Get, layer after layer.
struct LoadTransfer {
  NamespaceHandle name_space;
  std::vector<BlockKey> keys;
  // As SegmentPlace; called on a thread of the transfers. Its memory stays the engine's to give: it
  // is written to until the result was polled.
  std::function<absl::Span<uint8_t>(size_t block, const SegmentId& id)> place;
  // Not empty, no segment twice (LoadStepsByLayer).
  std::vector<LayerStep> steps;
  // A share of a lease of one prompt, which has the keys: it ends with the transfer, and says how
  // many blocks could be used. Without one every step pins for itself.
  std::optional<ReadLease> lease;
  // For all steps; zero takes the client's data_timeout for each.
  absl::Duration timeout = absl::ZeroDuration();
};

// WriteSession::Write of all its reserved blocks, layer after layer, then Commit. The transfer owns
// the session, and so gives up what it reserved when it ends before that.
struct StoreTransfer {
  WriteSession session;
  // As SegmentSource; called on a thread of the transfers, for steps that are ready.
  std::function<absl::Span<const uint8_t>(size_t block, const SegmentId& id)> source;
  // Not empty, no segment twice (StepsByLayer). Of all ranks together they are the whole blocks.
  std::vector<LayerStep> steps;
  // How many of the first steps can be read now; AsyncTransfers::SourceReady says when more can.
  uint32_t steps_ready = 0;
  WriteOptions options = {};
};

struct LoadResult {
  // Not OK does not take back what is usable.
  absl::Status status;
  // Consecutive blocks from the start that are good in every step, of a step with a window the last
  // ones; 0 when the prefix became shorter than a window was loaded for.
  size_t usable_prefix = 0;
  uint64_t bytes_verified = 0;
  // At most kMismatchesPerEndMax.
  std::vector<MismatchedSegment> mismatches;
};

struct StoreResult {
  absl::Status status;
  uint64_t bytes_written = 0;
  // Segments that the node refused.
  size_t errors_total = 0;
  // Blocks of the token that are present now, all ranks' parts together, and whether all are.
  uint32_t blocks_present = 0;
  bool complete = false;
};

using TransferResult = std::variant<absl::StatusOr<LookupAnswer>, absl::StatusOr<LeaseState>,
                                    absl::StatusOr<WriteSession>, LoadResult, StoreResult>;

struct TransferEvent {
  TransferId id{};
  // Steps that are done so far: of a load, their layers of the first `usable` blocks can be used.
  uint32_t steps_done = 0;
  size_t usable = 0;
  // With the last event of a transfer.
  std::optional<TransferResult> result;
};

}  // namespace cairn
