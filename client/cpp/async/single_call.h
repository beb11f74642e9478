// SingleCall: a transfer that is one call, whose answer is the result.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cpp/async/transfer.h"

namespace cairn {

template <typename Answer>
class SingleCall final : public Transfer {
 public:
  explicit SingleCall(std::function<absl::StatusOr<Answer>()> call) : call_(std::move(call)) {}

  Next Step(uint32_t /*steps_ready*/) override {
    answer_.emplace(call_());
    return Next::kDone;
  }
  void Abandon() override {
    answer_.emplace(absl::CancelledError("cancelled before the call was made"));
  }
  TransferResult TakeResult() override { return *std::move(answer_); }

 private:
  const std::function<absl::StatusOr<Answer>()> call_;
  std::optional<absl::StatusOr<Answer>> answer_;
};

}  // namespace cairn
