// StoreByLayers: a StoreTransfer, one Write a step and a Commit at the end.
#pragma once

#include <cstdint>
#include <optional>

#include "client/cpp/async/transfer.h"

namespace cairn {

class StoreByLayers final : public Transfer {
 public:
  // REQUIRES: checked steps; a session that reserved something.
  explicit StoreByLayers(StoreTransfer asked);

  Next Step(uint32_t steps_ready) override;
  void Abandon() override;
  uint32_t steps_done() const override { return steps_done_; }
  TransferResult TakeResult() override { return std::move(result_); }

 private:
  absl::Status WriteStep();
  absl::Status Commit();
  void EndToken();

  StoreTransfer asked_;
  uint32_t steps_done_ = 0;
  StoreResult result_;
};

}  // namespace cairn
