#include "client/cpp/call_queue.h"

#include <grpc/support/time.h>

#include "client/cpp/raw_call.h"
#include "common/base/check.h"

namespace cairn {

CallQueue::~CallQueue() {
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

void CallQueue::Wait() {
  void* tag = nullptr;
  bool ok = false;
  CAIRN_CHECK(queue_.Next(&tag, &ok));
  Tell(tag, ok);
}

bool CallQueue::WaitWithin(absl::Duration wait) {
  void* tag = nullptr;
  bool ok = false;
  // gRPC rounds up to milliseconds: what is not to wait gets a time that is long past.
  const gpr_timespec until =
      wait <= absl::ZeroDuration()
          ? gpr_inf_past(GPR_CLOCK_MONOTONIC)
          : gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                         gpr_time_from_nanos(absl::ToInt64Nanoseconds(wait), GPR_TIMESPAN));
  const auto got = queue_.AsyncNext(&tag, &ok, until);
  if (got == grpc::CompletionQueue::TIMEOUT) return false;
  CAIRN_CHECK(got == grpc::CompletionQueue::GOT_EVENT);
  Tell(tag, ok);
  return true;
}

void CallQueue::Tell(void* tag, bool ok) {
  const Operation* const operation = static_cast<const Operation*>(tag);
  operation->call->Ended(operation->kind, ok);
}

}  // namespace cairn
