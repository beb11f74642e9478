// OpenTrace: a trace file of any format known here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/replay/trace.h"

namespace cairn::replay {

struct TraceOptions {
  // Tokens that one hash id covers; 0 for what the format has: 512 for Mooncake's, 64 for
  // normalised lines. Not for traces of real tokens.
  uint32_t block_tokens = 0;
};

// Reads the file at `path`, plain or gzipped, in the format that its first line shows: Mooncake
// JSON lines, agent tokens JSON lines, or normalised lines. NOT_FOUND when it cannot be opened;
// INVALID_ARGUMENT when it is empty, of another format, or the options do not fit.
absl::StatusOr<std::unique_ptr<TraceReader>> OpenTrace(const std::string& path,
                                                       const TraceOptions& options = {});

}  // namespace cairn::replay
