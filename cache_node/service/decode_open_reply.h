// DecodeOpenReply: one OpenSequence call: it may wait for blocks, without a thread, and then for
// its turn on the engine.
//
// A client that is gone leaves at once while it waits; a sequence that was opened for nobody is
// closed again. Owns itself until OnDone, and is kept by whoever calls it at that moment.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cache_node/decode/engine/decode_engine.h"
#include "cache_node/service/decode_calls.h"
#include "cache_node/service/rpc_metrics.h"
#include "cache_node/service/settled_waiter.h"
#include "cache_node/service/waiting_calls.h"

namespace cairn::node {

class DecodeOpenReply final : public grpc::ServerUnaryReactor {
 public:
  struct Parts {
    DecodeCalls* calls = nullptr;
    DecodeEngine* engine = nullptr;
    WaitingCalls* waiting = nullptr;
    SettledWaiter* waiter = nullptr;
    const Clock* clock = nullptr;
  };

  // The reactor to return from the handler. `repeatable`: the answer can be asked for again.
  static grpc::ServerUnaryReactor* Start(const Parts& parts, DecodeCalls::Opening opening,
                                         bool repeatable, v1::OpenSequenceResponse* response,
                                         RpcMetrics::Call call);

  void OnCancel() override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnDone() override { delete this; }

 private:
  class Waiting;

  DecodeOpenReply(const Parts& parts, DecodeCalls::Opening opening, bool repeatable,
                  v1::OpenSequenceResponse* response, RpcMetrics::Call call)
      : parts_(parts),
        repeatable_(repeatable),
        response_(response),
        opening_(std::move(opening)),
        call_(std::move(call)) {}

  // False: worth waiting. True: it is the engine's, or has ended.
  bool Try(bool last);
  void OpenOnEngine();
  void End(const absl::Status& status);

  const Parts parts_;
  const bool repeatable_;
  v1::OpenSequenceResponse* const response_;
  std::optional<DecodeCalls::Opening> opening_;  // Of one thread at a time.
  RpcMetrics::Call call_;
  std::atomic<bool> cancelled_{false};
  absl::Mutex mutex_;
  WaitingCalls::Ticket ticket_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: it has not joined.
};

}  // namespace cairn::node
