// DecodeStream: one DecodeStream call: requests of one worker, each answered as it is done.
//
// Up to kDecodeStepsMax requests are under way, from their read until their answer is in the
// transport; beyond that nothing is read. They reach the engine in the order in which they came.
// Answers go one at a time. A stream ends with a status for what is wrong with it as a whole: its
// opening, a second one, a request without a number; when the rights of its caller end; when its
// client takes no answer for `stall_max`; when the node drains. Then what has not begun is left
// out. Sequences outlive their streams.
//
// Owned by gRPC until OnDone, and by whoever calls it at that moment (the engine, DecodeStreams):
// hence shared. Its borrowed parts must outlive the server and the engine.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cache_node/decode/engine/decode_engine.h"
#include "cache_node/service/decode_bytes.h"
#include "cache_node/service/decode_slot.h"
#include "cache_node/service/decode_streams.h"
#include "cache_node/service/finish_gate.h"
#include "cache_node/service/rpc_metrics.h"
#include "cache_node/service/stream_rights.h"
#include "cache_node/store/block_store.h"
#include "common/base/clock.h"

namespace cairn::node {

class DecodeStream final : public grpc::ServerBidiReactor<v1::DecodeRequest, v1::DecodeResponse>,
                           public DecodeStreams::Stream,
                           public DecodeSlotOwner,
                           public std::enable_shared_from_this<DecodeStream> {
 public:
  struct Parts {
    BlockStore* store = nullptr;
    DecodeEngine* engine = nullptr;
    DecodeStreams* streams = nullptr;
    DecodeBytes* bytes = nullptr;
    const Clock* clock = nullptr;
    absl::Duration stall_max = absl::Seconds(5);
  };

  // The reactor to return; it owns itself until OnDone. Null: there are as many streams as may be,
  // and `call` is as it was. REQUIRES: the rights are there.
  static grpc::ServerBidiReactor<v1::DecodeRequest, v1::DecodeResponse>* Start(
      const Parts& parts, grpc::CallbackServerContext* context,
      std::unique_ptr<StreamRights> rights, RpcMetrics::Call* call);

  ~DecodeStream() override;

  void OnTick() override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnEnd(const absl::Status& status) override { End(status); }
  void OnStepDone(DecodeSlot* slot) override ABSL_LOCKS_EXCLUDED(mutex_);

  void OnReadDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnCancel() override;
  void OnDone() override;

 private:
  DecodeStream(const Parts& parts, grpc::CallbackServerContext* context,
               std::unique_ptr<StreamRights> rights);

  // Reads into a free slot, unless none is, a read is under way, or no more comes.
  void Read() ABSL_LOCKS_EXCLUDED(mutex_);
  // What came. Not OK: the stream ends.
  absl::Status Take(DecodeSlot* slot);
  absl::Status Open(const v1::DecodeOpen& open);
  void Submit(DecodeSlot* slot);
  // Queues the answer.
  void Write(DecodeSlot* slot) ABSL_LOCKS_EXCLUDED(mutex_);
  void StartWriting(DecodeSlot* slot) ABSL_LOCKS_EXCLUDED(mutex_);
  void GiveBack(DecodeSlot* slot) ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsOver() const ABSL_LOCKS_EXCLUDED(mutex_);
  void End(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_);
  void FinishIf(std::optional<absl::Status> status);

  const Parts parts_;
  grpc::CallbackServerContext* const context_;  // Valid until OnDone.
  const std::unique_ptr<StreamRights> rights_;
  RpcMetrics::Call call_;
  FinishGate gate_;
  // Of the opening; of the thread that takes what came.
  bool opened_ = false;
  Fingerprint fingerprint_;
  std::vector<std::unique_ptr<AttendShape>> shapes_;
  std::shared_ptr<DecodeStream> self_;  // Until OnDone.

  mutable absl::Mutex mutex_;
  std::vector<std::unique_ptr<DecodeSlot>> slots_ ABSL_GUARDED_BY(mutex_);
  std::vector<DecodeSlot*> free_ ABSL_GUARDED_BY(mutex_);
  DecodeSlot* reading_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool no_more_ ABSL_GUARDED_BY(mutex_) = false;  // The client has sent all.
  DecodeSlot* writing_ ABSL_GUARDED_BY(mutex_) = nullptr;
  absl::Time writing_since_ ABSL_GUARDED_BY(mutex_);
  std::deque<DecodeSlot*> answered_ ABSL_GUARDED_BY(mutex_);  // Behind the one that is written.
};

}  // namespace cairn::node
