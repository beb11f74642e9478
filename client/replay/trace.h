// TraceReader: the requests of a trace, one by one.
//
// Not thread-safe. Memory stays bounded by the longest request (and, where requests refer to
// earlier ones, by what those added). OpenTrace (open_trace.h) reads files; GeneratedTrace makes
// requests up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/replay/trace_prompt.h"

namespace cairn::replay {

struct TraceRequest {
  // Since the trace's first request; a trace need not be sorted, so it may be negative.
  double arrival_s = 0;
  uint64_t output_tokens = 0;
  TracePrompt prompt;
  std::string source = {};  // Where it comes from, if the trace says it.

  uint64_t input_tokens() const { return prompt.token_count(); }
  uint64_t name_space() const { return prompt.name_space(); }
};

class TraceReader {
 public:
  virtual ~TraceReader() = default;

  // The next request with a prompt, or nothing at the end. INVALID_ARGUMENT names the file, the
  // line and what is wrong; every later call says the same again.
  absl::StatusOr<std::optional<TraceRequest>> Next();

  // Requests without a prompt that Next passed over.
  uint64_t empty_requests() const { return empty_requests_; }

  // Tokens that one block of the trace covers: what a replay's blocks should hold, so that they
  // can be shared as recorded. 0 when the trace has real tokens and any size will do.
  virtual uint32_t block_tokens() const = 0;

 private:
  // The next request, empty or not, its arrival by the trace's own clock.
  virtual absl::StatusOr<std::optional<TraceRequest>> Read() = 0;

  absl::Status failure_;
  std::optional<double> first_arrival_s_;
  uint64_t empty_requests_ = 0;
};

}  // namespace cairn::replay
