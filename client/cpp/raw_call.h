// RawCall: one call whose messages are bytes, driven by the thread that uses it.
//
// At most one write and one read are under way; Next() waits for whichever ends first. No threads
// and no locks of ours: the call has a queue of its own, or shares one with other calls of the same
// thread. Not thread-safe. The destructor cancels what is not finished and waits for gRPC to let
// go, which cancelling makes prompt.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cpp/call_queue.h"
#include "common/security/call_metadata.h"

namespace cairn {

class RawCall {
 public:
  enum class Event { kWritten, kRead };
  struct Done {
    Event event = Event::kRead;
    // Read: a message is there; false: the call has ended. Written: the message is on its way;
    // false: it never will be.
    bool ok = false;
  };

  // Prepares the call, which begins with its first write. `method` as in "/cairn.v1.CacheNode/Get".
  // `metadata`, where not null, goes along.
  RawCall(grpc::GenericStub* stub, const std::string& method, absl::Duration timeout,
          const CallMetadata* metadata);
  // The same over `queue`, which it borrows.
  RawCall(CallQueue* queue, grpc::GenericStub* stub, const std::string& method,
          absl::Duration timeout, const CallMetadata* metadata);
  ~RawCall();

  RawCall(const RawCall&) = delete;
  RawCall& operator=(const RawCall&) = delete;

  // REQUIRES: no write under way. `last`: no other follows.
  void BeginWrite(const grpc::ByteBuffer& message, bool last);
  // Says that no other write follows; counts as a write. REQUIRES as BeginWrite.
  void BeginWritesDone();
  // REQUIRES: no read under way; a write has begun.
  void BeginRead();

  // Waits for a write or a read to end. REQUIRES: one is under way, or has ended untold.
  Done Next();
  // Nothing when neither ended within `wait`: they are still under way. Of a shared queue it may
  // answer sooner.
  std::optional<Done> NextWithin(absl::Duration wait);
  // Whether a write or a read has ended that Next() has not told yet.
  bool HasEnded() const { return !ended_.empty(); }
  // What the last read gave. REQUIRES: no read under way.
  const grpc::ByteBuffer& message() const { return message_; }
  // The same, to be kept while the next read is under way.
  grpc::ByteBuffer TakeMessage();

  void Cancel() { context_.TryCancel(); }
  // How the call ended. What is under way ends too. REQUIRES: a write has begun; a read said that
  // the call has ended, or it was cancelled; to be called once.
  absl::Status Finish();

 private:
  friend class CallQueue;
  using Kind = CallQueue::Operation::Kind;

  // Exactly one of the two queues is given.
  RawCall(std::unique_ptr<CallQueue> own, CallQueue* shared, grpc::GenericStub* stub,
          const std::string& method, absl::Duration timeout, const CallMetadata* metadata);

  void Ended(Kind kind, bool ok);

  const std::unique_ptr<CallQueue> own_queue_;
  CallQueue* const queue_;
  CallQueue::Operation write_{this, Kind::kWrite};
  CallQueue::Operation read_{this, Kind::kRead};
  CallQueue::Operation finish_{this, Kind::kFinish};
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  grpc::ByteBuffer message_;
  grpc::Status status_;
  std::deque<Done> ended_;  // Untold; at most one write and one read.
  bool started_ = false;    // A write has begun.
  bool writing_ = false;
  bool reading_ = false;
  bool status_is_there_ = false;
  bool finished_ = false;
};

}  // namespace cairn
