// MemoryLimitOf: the resident memory that a program keeps to, decided once at start.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/server/byte_size.h"
#include "common/server/memory_sum.h"

namespace cairn {

// Of physical memory, in percent, where neither a flag nor a cgroup says a limit.
inline constexpr uint64_t kPhysicalPercent = 80;

// `asked`, the value of --memory-limit; when that is 0 the cgroup's limit, or without one
// kPhysicalPercent of the machine's memory. FAILED_PRECONDITION when the cgroup allows less than
// was asked for, or when `sum` adds up to more than the limit. `root` is "/" but for tests.
absl::StatusOr<ByteSize> MemoryLimitOf(ByteSize asked, const MemorySum& sum,
                                       absl::string_view root);

}  // namespace cairn
