#include "cache_node/service/waiting_reply.h"

#include <utility>

#include "common/base/check.h"
#include "common/rpc/status_mapping.h"

namespace cairn::node {

class WaitingReply::Waiting final : public WaitingCalls::Call {
 public:
  explicit Waiting(WaitingReply* reply) : reply_(reply) {}

  bool TryAnswer() override { return reply_->Try(false); }

  void GiveUp(WaitingCalls::Reason reason) override {
    if (reason == WaitingCalls::Reason::kCancelled) {
      reply_->End(absl::CancelledError("the client is gone"));
    } else {
      CAIRN_CHECK(reply_->Try(true));
    }
  }

 private:
  WaitingReply* const reply_;  // Lives until it was finished.
};

grpc::ServerUnaryReactor* WaitingReply::Start(WaitingCalls* calls, SettledWaiter* waiter,
                                              absl::Time deadline, RpcMetrics::Call call,
                                              Attempt attempt) {
  auto* const reply = new WaitingReply(calls, std::move(call), std::move(attempt));
  if (reply->Try(false)) return reply;
  std::unique_ptr<WaitingCalls::Call> waiting = std::make_unique<Waiting>(reply);
  const WaitingCalls::Ticket ticket = calls->Join(deadline, waiting);
  if (ticket == 0) {
    CAIRN_CHECK(reply->Try(true));
    return reply;
  }
  // It may be finished by now, but is not gone before gRPC got it from us.
  bool cancelled = false;
  {
    absl::MutexLock lock(&reply->mutex_);
    reply->ticket_ = ticket;
    cancelled = reply->cancelled_;
  }
  if (cancelled) calls->Cancel(ticket);
  // For what settled since the first try, and for the new deadline.
  waiter->Signal();
  return reply;
}

void WaitingReply::OnCancel() {
  WaitingCalls::Ticket ticket = 0;
  {
    absl::MutexLock lock(&mutex_);
    cancelled_ = true;
    ticket = ticket_;
  }
  if (ticket != 0) calls_->Cancel(ticket);
}

bool WaitingReply::Try(bool last) {
  const std::optional<absl::Status> status = attempt_(last);
  if (!status.has_value()) return false;
  End(*status);
  return true;
}

void WaitingReply::End(const absl::Status& status) {
  call_.End(status.code());
  Finish(ToGrpcStatus(status));
}

}  // namespace cairn::node
