// CallQueue: where one thread waits for whichever of several RawCalls has something to say.
//
// Whoever waits on it moves all its calls forward: the connections of all of them are read and
// written meanwhile. Not thread-safe. Its calls borrow it and are gone before it.
#pragma once

#include <grpcpp/completion_queue.h>

#include "absl/time/time.h"

namespace cairn {

class RawCall;

class CallQueue {
 public:
  CallQueue() = default;
  ~CallQueue();

  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  // What a call starts: gRPC carries its address as the tag.
  struct Operation {
    enum class Kind { kWrite, kRead, kFinish };
    RawCall* call = nullptr;
    Kind kind = Kind::kWrite;
  };

  // Waits for an operation of any call to end and tells its call. REQUIRES: one is under way.
  void Wait();
  // False when none ended within `wait`.
  bool WaitWithin(absl::Duration wait);

  grpc::CompletionQueue* queue() { return &queue_; }

 private:
  static void Tell(void* tag, bool ok);

  grpc::CompletionQueue queue_;
};

}  // namespace cairn
