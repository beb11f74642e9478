// LineTrace: what traces of one request a line have in common.
//
// Not thread-safe. A format says how one line is parsed; the place is put in front of what it
// finds wrong.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/replay/line_reader.h"
#include "client/replay/trace.h"

namespace cairn::replay {

class LineTrace : public TraceReader {
 protected:
  // `lines` stands before the first line to parse.
  explicit LineTrace(std::unique_ptr<LineReader> lines);

 private:
  absl::StatusOr<std::optional<TraceRequest>> Read() final;

  // The request on a line. INVALID_ARGUMENT says what is wrong with which value.
  virtual absl::StatusOr<TraceRequest> Parse(absl::string_view line, uint64_t line_number) = 0;

  const std::unique_ptr<LineReader> lines_;
};

// INVALID_ARGUMENT when no prompt may have that many tokens.
absl::Status ValidateTokenCount(uint64_t tokens);

}  // namespace cairn::replay
