// DecodeStep: one request of attention: a batch of items of one layer, and their results.
//
// Made by who asks, and lent to the engine from Submit until OnDone. Requests and results lie where
// the caller says, so that rows are not copied. A plain value but for OnDone and Cancel.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cache_node/decode/engine/attend_shape.h"
#include "cache_node/decode/sequence/sequence.h"
#include "common/base/bytes16.h"
#include "common/identity/fingerprint.h"

namespace cairn::node {

// Consecutive blocks of one prompt of a lease.
struct LeasedTarget {
  LeaseId lease;
  uint32_t prompt = 0;
  uint32_t first_block = 0;
  uint32_t blocks = 0;  // 0: all that the lease covers from there.
};

struct DecodeItem {
  enum class Target : uint8_t { kNone, kLeased, kSequence };
  Target target = Target::kNone;
  LeasedTarget leased;
  SequenceId sequence;
  uint64_t position = 0;
  uint32_t rows = 0;
  absl::string_view queries;  // None: rows are only appended.
  absl::string_view keys;     // None: nothing is appended.
  absl::string_view values;
  absl::Span<const uint32_t> tokens;
};

struct DecodeResult {
  absl::Status status;
  std::string* output = nullptr;  // Where numbers go; of an item that fails they end empty.
  std::string* log_sum_exp = nullptr;
  uint64_t length_tokens = 0;
};

class DecodeStep {
 public:
  virtual ~DecodeStep() = default;

  // All results are in. Once, on any thread; nothing of the engine is locked. The step may go, and
  // others be submitted.
  virtual void OnDone() = 0;

  // Nobody waits for the results any more: what has not begun is left out. Thread-safe.
  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

  std::string tenant;
  Fingerprint fingerprint;
  const AttendShape* shape = nullptr;
  uint32_t layer = 0;
  std::vector<DecodeItem> items;
  std::vector<DecodeResult> results;  // One an item; an error that is there already stays.
  // Outputs and log-sum-exps of the items that are asked for (item_checks.h).
  uint64_t result_bytes = 0;
  uint64_t request_bytes = 0;  // About what it keeps in memory until it is done.

 protected:
  void Revive() { cancelled_.store(false, std::memory_order_relaxed); }

 private:
  std::atomic<bool> cancelled_{false};
};

}  // namespace cairn::node
