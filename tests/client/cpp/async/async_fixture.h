// AsyncTransfersTest: an engine's loop, which only submits and polls, before a fake node. Where a
// story needs a transfer to stand still, its place or source waits at a gate on the transfers' own
// thread: had a call of the loop to wait for that thread, the test would never end.
#pragma once

#include <poll.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "client/cpp/async/async_transfers.h"
#include "client/cpp/async/layer_steps.h"
#include "tests/client/cpp/client_fixture.h"

namespace cairn::testing {

class AsyncTransfersTest : public ClientTest {
 protected:
  AsyncTransfersTest() { Start({.threads = 1, .transfers_max = 16}); }

  void Start(const AsyncOptions& options) {
    transfers_.reset();
    transfers_ = std::make_unique<AsyncTransfers>(client_.get(), &clock_, options);
  }

  bool Readable(int timeout_ms) const {
    pollfd waited{.fd = transfers_->event_fd(), .events = POLLIN, .revents = 0};
    return poll(&waited, 1, timeout_ms) == 1;
  }

  // The next event, as an engine's loop gets it.
  TransferEvent Next() {
    for (;;) {
      CAIRN_CHECK(Readable(60'000));
      std::vector<TransferEvent> events = transfers_->Poll(1);
      if (!events.empty()) return std::move(events.front());
    }
  }
  // Its last event, past all others.
  TransferResult ResultOf(TransferId id) {
    for (;;) {
      TransferEvent event = Next();
      if (event.id == id && event.result.has_value()) return *std::move(event.result);
    }
  }
  LoadResult LoadedBy(TransferId id) { return std::get<LoadResult>(ResultOf(id)); }
  StoreResult StoredBy(TransferId id) { return std::get<StoreResult>(ResultOf(id)); }

  std::vector<LayerStep> Steps() const { return *StepsByLayer(handle_->payload_map(), {}, 1); }

  // Into buffer_; before a segment of `held_layer` it waits at the gate.
  LoadTransfer Load(const std::vector<BlockKey>& keys, uint32_t held_layer = UINT32_MAX) {
    buffer_.assign(keys.size() * handle_->block_bytes(), kSentinel);
    const ContiguousBlocks place(&handle_->payload_map(), absl::MakeSpan(buffer_));
    return {.name_space = *handle_,
            .keys = keys,
            .place =
                [this, place, held_layer](size_t block, const SegmentId& id) {
                  if (id.layer == held_layer) gate_.WaitForNotification();
                  return place(block, id);
                },
            .steps = Steps(),
            .lease = std::nullopt};
  }

  ReadLease Lease(const Prompt& prompt) {
    auto answer = client_->Lookup(*handle_, {&prompt, 1}, {.lease_readers = 1});
    CAIRN_CHECK(answer.ok() && answer->lease.has_value());
    return *std::move(answer->lease);
  }

  StoreTransfer Store(const Prompt& prompt, uint32_t steps_ready) {
    auto session = client_->Reserve(*handle_, prompt, 0, prompt.block_count());
    CAIRN_CHECK_OK(session.status());
    stored_ = Payload(prompt.keys());
    const ContiguousBlocks source(&handle_->payload_map(), absl::MakeSpan(stored_));
    return {.session = *std::move(session),
            .source = source,
            .steps = Steps(),
            .steps_ready = steps_ready,
            .options = {}};
  }

  absl::Notification gate_;
  std::vector<uint8_t> stored_;
  std::unique_ptr<AsyncTransfers> transfers_;
};

}  // namespace cairn::testing
