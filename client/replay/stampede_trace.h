// StampedeTrace: requests for one prompt, all at once: what a cold prefix is asked for when it
// becomes known. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "client/replay/trace.h"

namespace cairn::replay {

struct StampedeOptions {
  uint64_t requests = 64;
  uint64_t prompt_tokens = 8192;
  // Another seed is another prompt.
  uint64_t seed = 1;
};

class StampedeTrace final : public TraceReader {
 public:
  static constexpr uint64_t kRequestsMax = uint64_t{1} << 20;
  static constexpr uint64_t kPromptTokensMax = uint64_t{1} << 20;

  // INVALID_ARGUMENT names the option that is out of range.
  static absl::StatusOr<std::unique_ptr<StampedeTrace>> Make(const StampedeOptions& options);

  uint32_t block_tokens() const override { return 0; }

 private:
  explicit StampedeTrace(const StampedeOptions& options) : options_(options) {}

  absl::StatusOr<std::optional<TraceRequest>> Read() override;

  const StampedeOptions options_;
  uint64_t made_ = 0;
};

}  // namespace cairn::replay
