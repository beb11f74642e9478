#include "cache_node/service/decode_open_reply.h"

#include <utility>

#include "common/base/check.h"
#include "common/rpc/status_mapping.h"

namespace cairn::node {

class DecodeOpenReply::Waiting final : public WaitingCalls::Call {
 public:
  explicit Waiting(DecodeOpenReply* reply) : reply_(reply) {}

  bool TryAnswer() override { return reply_->Try(false); }

  void GiveUp(WaitingCalls::Reason reason) override {
    if (reason == WaitingCalls::Reason::kCancelled) {
      reply_->End(absl::CancelledError("the client is gone"));
    } else {
      CAIRN_CHECK(reply_->Try(true));
    }
  }

 private:
  DecodeOpenReply* const reply_;  // Lives until it was finished.
};

grpc::ServerUnaryReactor* DecodeOpenReply::Start(const Parts& parts, DecodeCalls::Opening opening,
                                                 bool repeatable,
                                                 v1::OpenSequenceResponse* response,
                                                 RpcMetrics::Call call) {
  const absl::Duration wait = opening.wait;
  auto* const reply =
      new DecodeOpenReply(parts, std::move(opening), repeatable, response, std::move(call));
  if (reply->Try(wait == absl::ZeroDuration())) return reply;
  std::unique_ptr<WaitingCalls::Call> waiting = std::make_unique<Waiting>(reply);
  const WaitingCalls::Ticket ticket = parts.waiting->Join(parts.clock->SteadyNow() + wait, waiting);
  if (ticket == 0) {
    CAIRN_CHECK(reply->Try(true));
    return reply;
  }
  // It may be finished by now, but is not gone before gRPC got it from us.
  {
    absl::MutexLock lock(&reply->mutex_);
    reply->ticket_ = ticket;
  }
  if (reply->cancelled_.load()) parts.waiting->Cancel(ticket);
  // For what settled since the first try, and for the new deadline.
  parts.waiter->Signal();
  return reply;
}

void DecodeOpenReply::OnCancel() {
  cancelled_.store(true);
  WaitingCalls::Ticket ticket = 0;
  {
    absl::MutexLock lock(&mutex_);
    ticket = ticket_;
  }
  if (ticket != 0) parts_.waiting->Cancel(ticket);
}

bool DecodeOpenReply::Try(bool last) {
  const absl::StatusOr<bool> pinned = parts_.calls->TryPin(*opening_, last);
  if (pinned.ok() && !*pinned) return false;
  if (pinned.ok()) {
    OpenOnEngine();
  } else {
    End(WithDecodeRetry(pinned.status()));
  }
  return true;
}

void DecodeOpenReply::OpenOnEngine() {
  DecodeEngine::Job job = [this](SequenceTable& sequences) {
    const bool gone = cancelled_.load() && !repeatable_;
    const absl::Status status =
        DecodeCalls::FinishOpen(sequences, *std::exchange(opening_, std::nullopt), gone, response_);
    End(status);
  };
  const absl::Status status = parts_.engine->Run(job);
  if (!status.ok()) End(WithDecodeRetry(status));
}

void DecodeOpenReply::End(const absl::Status& status) {
  opening_.reset();  // A turn that was not remembered is forgotten before the caller hears of it.
  call_.End(status.code());
  Finish(ToGrpcStatus(status));
}

}  // namespace cairn::node
