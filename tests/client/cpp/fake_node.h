// FakeNode: a cache node for the client's tests, on a loopback port. Fake: it keeps what it is
// written, in memory, and serves it; it leases, counts and remembers requests. It can be told to
// misbehave: fail the next calls, bend what Get answers, refuse pieces, cut streams. It checks the
// digests of what arrives, as the contract wants.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "cairn/v1/cache_node.grpc.pb.h"
#include "client/cpp/namespace_handle.h"

namespace cairn::testing {

class FakeNode final : public v1::CacheNode::Service {
 public:
  using Frames = std::vector<v1::GetResponse>;

  // Serves `name_space`; what RegisterNamespace is asked does not matter. `beside`, where not null,
  // is served too and outlives it.
  explicit FakeNode(const NamespaceHandle& name_space, grpc::Service* beside = nullptr);
  ~FakeNode() override;

  const std::string& target() const { return target_; }
  // Stops serving; calls then find nobody.
  void Stop();

  // What the next calls of the method (as in "Reserve") end with, one each, before anything is
  // done.
  void FailNext(const std::string& method, const absl::Status& status, int times = 1);
  // The same, but after the call was carried out.
  void LoseAnswer(const std::string& method);
  // Bends the frames of every Get.
  void BendGet(std::function<void(Frames*)> bend);
  // Ends the next Get as UNAVAILABLE after this many frames.
  void CutNextGetAfter(size_t frames);
  // Ends the next Write as UNAVAILABLE after this many answers.
  void CutNextWriteAfter(size_t frames);
  // The next Write takes nothing until others have answered this many frames, then ends as
  // UNAVAILABLE.
  void HoldNextWriteUntil(size_t frames_written);
  // Answers lookups as a node that does not know the namespace.
  void ForgetNamespace();
  // Answers the next lookups as if nothing were there.
  void HideFromNextLookups(int times);
  // Refuses the first piece of every frame.
  void RefusePieces(bool refuse);
  // Answers every frame twice.
  void AnswerTwice(bool twice);
  // Outcomes of the next reservations, for all their blocks.
  void AnswerReserve(std::vector<v1::ReserveOutcome> outcomes);
  // What the feed sends before it waits for requests.
  void SetFeed(std::vector<v1::WatchBlocksResponse> messages);

  // Request ids of the calls so far, in order.
  std::vector<std::string> RequestIds(const std::string& method) const;
  int Calls(const std::string& method) const;
  std::vector<v1::EndLeaseRequest> ended() const;
  std::vector<v1::LookupRequest> lookups() const;
  std::vector<v1::ReserveRequest> reserves() const;
  std::vector<v1::GetRequest> gets() const;
  std::vector<v1::PinBlocksRequest> pins() const;
  std::vector<v1::SegmentRef> mismatches() const;
  size_t blocks_present() const;
  size_t frames_written() const;
  // What it says of blocks that it is to pull, the last again and again; each of its keys the same.
  void SayPulls(std::vector<v1::PullOutcome> outcomes, std::string detail = "");
  std::vector<v1::PullBlocksRequest> pulls() const;
  // Where it says that its local socket is; without, it has none.
  void OfferLocal(v1::OpenLocalResponse opened);
  // A block, in slot order, as if it had been written; and those that are there.
  void AddBlock(const BlockKey& key, absl::Span<const uint8_t> bytes);
  std::optional<std::string> Block(const BlockKey& key) const;
  // Waits until a call of this method has come.
  void AwaitCall(const std::string& method) const;
  // Waits until the feed was asked for shards again, and gives these.
  std::vector<uint32_t> AwaitResync() const;

 private:
  struct Token {
    std::vector<BlockKey> keys;
    std::vector<uint32_t> reserved;  // Indexes in keys.
    // By block and segment: the bytes, once they are in.
    std::map<std::pair<uint32_t, size_t>, std::string> written;
    std::map<std::pair<uint32_t, size_t>, uint64_t> committed;
  };

  grpc::Status Begin(const std::string& method, const std::string& request_id = {});
  grpc::Status End(const std::string& method) ABSL_LOCKS_EXCLUDED(mutex_);
  grpc::Status EndLocked(const std::string& method) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Frames FramesOf(const v1::GetRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::WriteResponse TakeFrame(const v1::WriteRequest& frame) ABSL_LOCKS_EXCLUDED(mutex_);
  std::string TakePiece(const v1::Piece& piece, const std::string& bytes, Token* token);
  bool Complete(const Token& token, uint32_t block) const;

  grpc::Status RegisterNamespace(grpc::ServerContext*, const v1::RegisterNamespaceRequest*,
                                 v1::RegisterNamespaceResponse*) override;
  grpc::Status RetireNamespace(grpc::ServerContext*, const v1::RetireNamespaceRequest*,
                               v1::RetireNamespaceResponse*) override;
  grpc::Status ClearScope(grpc::ServerContext*, const v1::ClearScopeRequest*,
                          v1::ClearScopeResponse*) override;
  grpc::Status Lookup(grpc::ServerContext*, const v1::LookupRequest*, v1::LookupResponse*) override;
  grpc::Status GetLease(grpc::ServerContext*, const v1::GetLeaseRequest*,
                        v1::GetLeaseResponse*) override;
  grpc::Status RenewLease(grpc::ServerContext*, const v1::RenewLeaseRequest*,
                          v1::RenewLeaseResponse*) override;
  grpc::Status EndLease(grpc::ServerContext*, const v1::EndLeaseRequest*,
                        v1::EndLeaseResponse*) override;
  grpc::Status Get(grpc::ServerContext*, const v1::GetRequest*,
                   grpc::ServerWriter<v1::GetResponse>*) override;
  grpc::Status Reserve(grpc::ServerContext*, const v1::ReserveRequest*,
                       v1::ReserveResponse*) override;
  grpc::Status Write(grpc::ServerContext*,
                     grpc::ServerReaderWriter<v1::WriteResponse, v1::WriteRequest>*) override;
  grpc::Status Commit(grpc::ServerContext*, const v1::CommitRequest*, v1::CommitResponse*) override;
  grpc::Status Abort(grpc::ServerContext*, const v1::AbortRequest*, v1::AbortResponse*) override;
  grpc::Status ReportMismatch(grpc::ServerContext*, const v1::ReportMismatchRequest*,
                              v1::ReportMismatchResponse*) override;
  grpc::Status Delete(grpc::ServerContext*, const v1::DeleteRequest*, v1::DeleteResponse*) override;
  grpc::Status PinBlocks(grpc::ServerContext*, const v1::PinBlocksRequest*,
                         v1::PinBlocksResponse*) override;
  grpc::Status WatchBlocks(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::WatchBlocksResponse, v1::WatchBlocksRequest>*) override;
  grpc::Status Describe(grpc::ServerContext*, const v1::DescribeRequest*,
                        v1::DescribeResponse*) override;
  grpc::Status PullBlocks(grpc::ServerContext*, const v1::PullBlocksRequest*,
                          v1::PullBlocksResponse*) override;
  grpc::Status OpenLocal(grpc::ServerContext*, const v1::OpenLocalRequest*,
                         v1::OpenLocalResponse*) override;

  const NamespaceHandle name_space_;
  std::string target_;
  std::unique_ptr<grpc::Server> server_;

  mutable absl::Mutex mutex_;
  std::map<std::string, std::vector<absl::Status>> failures_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int> answers_lost_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int> calls_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::vector<std::string>> request_ids_ ABSL_GUARDED_BY(mutex_);
  std::function<void(Frames*)> bend_ ABSL_GUARDED_BY(mutex_);
  size_t cut_get_after_ ABSL_GUARDED_BY(mutex_) = SIZE_MAX;
  size_t hold_write_until_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: not.
  size_t cut_write_after_ ABSL_GUARDED_BY(mutex_) = SIZE_MAX;
  bool namespace_known_ ABSL_GUARDED_BY(mutex_) = true;
  int lookups_to_hide_from_ ABSL_GUARDED_BY(mutex_) = 0;
  bool refuse_pieces_ ABSL_GUARDED_BY(mutex_) = false;
  bool answer_twice_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<v1::ReserveOutcome> reserve_outcomes_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::WatchBlocksResponse> feed_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint32_t> resyncs_ ABSL_GUARDED_BY(mutex_);

  std::map<BlockKey, std::map<size_t, std::string>> present_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Token> tokens_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::EndLeaseRequest> ended_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::LookupRequest> lookups_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::ReserveRequest> reserves_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::GetRequest> gets_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::PinBlocksRequest> pins_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::SegmentRef> mismatches_ ABSL_GUARDED_BY(mutex_);
  size_t frames_written_ ABSL_GUARDED_BY(mutex_) = 0;
  v1::OpenLocalResponse opened_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::PullOutcome> pull_outcomes_ ABSL_GUARDED_BY(mutex_);
  std::string pull_detail_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::PullBlocksRequest> pulls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn::testing
