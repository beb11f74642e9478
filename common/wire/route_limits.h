// Bounds of what a request may ask of a router, and of labels. What exceeds one is
// INVALID_ARGUMENT, with the bound in the message.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn {

inline constexpr size_t kLabelsMax = 16;
// Of a key, and of a value.
inline constexpr size_t kLabelBytesMax = 64;
// A replica without a preferred label stands as if its queue were at most so much longer.
inline constexpr double kPreferredLabelSecondsMax = 60;

inline constexpr size_t kSessionIdBytesMax = 128;
inline constexpr size_t kExcludedWorkersMax = 64;
inline constexpr uint32_t kRouteDeadlineMsMax = 3'600'000;

// Reason (error_reason.h) of an UNAVAILABLE that asking again does not change.
inline constexpr char kAllReplicasExcluded[] = "ALL_REPLICAS_EXCLUDED";

}  // namespace cairn
