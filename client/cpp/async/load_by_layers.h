// LoadByLayers: a LoadTransfer, one Get a step.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "client/cpp/async/transfer.h"
#include "client/cpp/cache_node_client.h"
#include "common/base/clock.h"

namespace cairn {

class LoadByLayers final : public Transfer {
 public:
  // Borrows client and clock. REQUIRES: checked steps; a lease, if any, of one prompt.
  LoadByLayers(CacheNodeClient* client, const Clock* clock, LoadTransfer asked);

  Next Step(uint32_t steps_ready) override;
  void Abandon() override;
  uint32_t steps_done() const override { return steps_done_; }
  size_t usable() const override { return result_.usable_prefix; }
  TransferResult TakeResult() override { return std::move(result_); }

 private:
  // `first`: index of the first block that was asked for.
  void Remember(const GetResult& got, size_t first);
  // A load may take longer than its share lives, and owns it: renews it once a third of its time is
  // over. A share that is over says so in the next Get.
  void RenewShare();
  // The rest can be of no use to anybody.
  void GiveUp(absl::Status why);
  void EndShare();

  CacheNodeClient* const client_;
  const Clock* const clock_;
  LoadTransfer asked_;
  const absl::Time deadline_;
  absl::Time renew_at_;
  uint32_t steps_done_ = 0;
  // Of what was loaded with a window, the usable prefix may become no shorter than this.
  size_t usable_least_ = 0;
  LoadResult result_;
};

}  // namespace cairn
