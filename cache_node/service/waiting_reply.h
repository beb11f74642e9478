// WaitingReply: a unary call that may wait for the store to settle, without holding a thread.
//
// Tried at once, then by the SettledWaiter until it is answered, its wait is over, or the client is
// gone, which it leaves at once. When no more calls may wait it answers with what there is.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cache_node/service/rpc_metrics.h"
#include "cache_node/service/settled_waiter.h"
#include "cache_node/service/waiting_calls.h"

namespace cairn::node {

class WaitingReply final : public grpc::ServerUnaryReactor {
 public:
  // The answer's status, having filled the response; nothing while it is worth waiting. Must answer
  // when `last`. Called by one thread at a time, never after it answered.
  using Attempt = absl::AnyInvocable<std::optional<absl::Status>(bool last)>;

  // The reactor to return from the handler; it owns itself. `deadline` is on the waiter's clock.
  static grpc::ServerUnaryReactor* Start(WaitingCalls* calls, SettledWaiter* waiter,
                                         absl::Time deadline, RpcMetrics::Call call,
                                         Attempt attempt);

  void OnCancel() override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnDone() override { delete this; }

 private:
  class Waiting;

  WaitingReply(WaitingCalls* calls, RpcMetrics::Call call, Attempt attempt)
      : calls_(calls), call_(std::move(call)), attempt_(std::move(attempt)) {}

  // Tries, and finishes the call if that answered it.
  bool Try(bool last);
  void End(const absl::Status& status);

  WaitingCalls* const calls_;
  RpcMetrics::Call call_;
  Attempt attempt_;
  absl::Mutex mutex_;
  WaitingCalls::Ticket ticket_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: it has not joined.
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace cairn::node
