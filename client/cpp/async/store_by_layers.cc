#include "client/cpp/async/store_by_layers.h"

#include <utility>

#include "common/base/check.h"

namespace cairn {

StoreByLayers::StoreByLayers(StoreTransfer asked) : asked_(std::move(asked)) {
  CAIRN_CHECK(!asked_.steps.empty() && asked_.session.token().has_value());
}

Transfer::Next StoreByLayers::Step(uint32_t steps_ready) {
  CAIRN_CHECK(steps_done_ < asked_.steps.size());
  if (steps_done_ >= steps_ready) return Next::kWait;
  result_.status = WriteStep();
  if (!result_.status.ok()) {
    EndToken();
    return Next::kDone;
  }
  if (++steps_done_ < asked_.steps.size()) {
    return steps_done_ < steps_ready ? Next::kStep : Next::kWait;
  }
  result_.status = Commit();
  return Next::kDone;
}

absl::Status StoreByLayers::WriteStep() {
  absl::StatusOr<WriteResult> written = asked_.session.Write(
      asked_.session.reserved(), asked_.steps[steps_done_].parts, asked_.source, asked_.options);
  if (!written.ok()) return written.status();
  result_.bytes_written += written->bytes_written;
  result_.errors_total += written->errors_total;
  return absl::OkStatus();
}

absl::Status StoreByLayers::Commit() {
  absl::StatusOr<CommitResult> committed = asked_.session.Commit();
  if (!committed.ok()) return committed.status();
  result_.errors_total += committed->errors_total;
  result_.blocks_present = committed->blocks_present;
  result_.complete = committed->complete;
  // Other ranks write the rest; a session that is attached ends nothing by itself.
  if (committed->errors_total == 0) asked_.session.KeepOnDestroy();
  return absl::OkStatus();
}

void StoreByLayers::Abandon() {
  result_.status = absl::CancelledError("cancelled");
  EndToken();
}

// For all ranks: without these layers none of the blocks can be whole. Where the node cannot be
// reached, the token's time to live does the same.
void StoreByLayers::EndToken() { asked_.session.Abort().IgnoreError(); }

}  // namespace cairn
