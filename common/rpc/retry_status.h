// "Not now, try again after d": a delay that travels with a status.
//
// It is a google.rpc.RetryInfo payload of the absl::Status, so that status_mapping.h carries it
// over the wire and clients in any language read it. No state; thread-safe.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace cairn {

inline constexpr char kRetryInfoTypeUrl[] = "type.googleapis.com/google.rpc.RetryInfo";

// Delay of a RESOURCE_EXHAUSTED that was given none.
inline constexpr absl::Duration kRetryDelayDefault = absl::Milliseconds(100);
// Longer delays are cut to this one, on both sides of the wire.
inline constexpr absl::Duration kRetryDelayMax = absl::Hours(1);

// `status` with the least wait before a retry, which replaces an earlier one. REQUIRES: not OK;
// delay not negative.
absl::Status WithRetryAfter(absl::Status status, absl::Duration delay);

// The delay, within [0, kRetryDelayMax] whatever the peer sent; nothing when there is none.
std::optional<absl::Duration> RetryAfter(const absl::Status& status);

}  // namespace cairn
