// Options and results of Reserve and Put. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "cairn/v1/write.pb.h"
#include "client/cpp/keep_wish.h"

namespace cairn {

struct ReserveOptions {
  // Life of the token without a write; zero takes the node's default.
  absl::Duration token_ttl = absl::ZeroDuration();
  KeepWish keep = {};
  // When nothing at all could be reserved for lack of space or quota, wait as the node says and ask
  // again, within the deadline.
  bool wait_when_exhausted = false;
  // Destroying the session ends the token unless its blocks are complete.
  bool abort_on_destroy = true;
  // Zero takes the client's control_timeout, or data_timeout when it may wait for space.
  absl::Duration timeout = absl::ZeroDuration();
};

struct PutOptions {
  // The first block to be written: those before it are another's to write, as a public first region
  // is for who only reads it.
  size_t first_block = 0;
  // Blocks under one token; those of public regions are not cut (PublicEndsOf, reserve_call.h).
  size_t blocks_per_reserve_max = 256;
  absl::Duration token_ttl = absl::ZeroDuration();
  KeepWish keep = {};
  // Wait for space, quota and admission.
  bool wait_when_exhausted = false;
  // As WriteOptions::source_stays_readable.
  bool source_stays_readable = false;
  // Of each reservation and of each write; zero takes the client's data_timeout.
  absl::Duration timeout = absl::ZeroDuration();
};

struct PutResult {
  // From the first one on that was to be written.
  size_t blocks_total = 0;
  size_t blocks_already_present = 0;
  // In another writer's hands.
  size_t blocks_in_progress = 0;
  size_t blocks_written = 0;
  uint64_t bytes_written = 0;
  // With KeepWish::pin_for.
  size_t blocks_pinned = 0;
  // Why the rest was not written: the node's first answer that ends a reservation.
  std::optional<v1::ReserveOutcome> stopped_by;

  // Every one of these blocks is present or in another writer's hands.
  bool complete() const {
    return blocks_already_present + blocks_in_progress + blocks_written == blocks_total;
  }
};

}  // namespace cairn
