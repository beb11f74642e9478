// FakeDecode: the Decode service of a node for the client's tests. Fake: sequences are kept in
// memory and computed with the real CPU kernels, over blocks that somebody else holds; it leaves
// out batching, budgets, tenants and time. It can be told to misbehave. Thread-safe.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "cairn/v1/decode.grpc.pb.h"
#include "client/cpp/namespace_handle.h"
#include "tests/client/cpp/decode/fake_sequence.h"

namespace cairn::testing {

class FakeDecode final : public v1::Decode::Service {
 public:
  struct Source {
    // The bytes of a block that is held.
    std::function<std::optional<std::string>(const BlockKey&)> block;
    // Blocks of the prompt of a lease; none for one that is unknown.
    std::function<std::vector<BlockKey>(const std::string& lease)> leased;
  };

  FakeDecode(const NamespaceHandle& name_space, Source source);

  // The node was started without memory for sequences.
  void HaveNoMemory();
  // Ends streams as UNAVAILABLE: each after so many answers of steps, the next `streams` of them;
  // what they were asked in vain was carried out.
  void CutStreams(int streams, int answers_first);
  // Refuses streams and opens as UNAVAILABLE, as a node that is gone; ends those under way at
  // their next step.
  void Die();
  // Steps wait until Release.
  void Hold();
  void Release();
  // Bends every answer of a step before it goes out.
  void Bend(std::function<void(v1::DecodeResponse*)> bend);
  // What the next items end with, before anything is done.
  void FailItems(int items, const absl::Status& status, uint32_t retry_ms = 0);
  void FailOpens(int opens, const absl::Status& status);
  // What the next streams end with at once.
  void FailStreams(int streams, const absl::Status& status);
  // All sequences are unknown from now on, as after a restart.
  void ForgetSequences();
  void ForgetLeases();
  // All sequences end there, and streams with their next step.
  void LoseTokensAfter(uint64_t length);

  size_t open_sequences() const;
  int opens() const;
  int streams() const;
  int steps() const;
  int items() const;
  std::vector<std::string> request_ids() const;
  // Waits until so many steps have come.
  void AwaitSteps(int steps) const;

 private:
  grpc::Status Attend(grpc::ServerContext*, const v1::AttendRequest*, v1::AttendResponse*) override;
  grpc::Status DecodeStream(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::DecodeResponse, v1::DecodeRequest>*) override;
  grpc::Status OpenSequence(grpc::ServerContext*, const v1::OpenSequenceRequest*,
                            v1::OpenSequenceResponse*) override;
  grpc::Status ForkSequence(grpc::ServerContext*, const v1::ForkSequenceRequest*,
                            v1::ForkSequenceResponse*) override;
  grpc::Status TruncateSequence(grpc::ServerContext*, const v1::TruncateSequenceRequest*,
                                v1::TruncateSequenceResponse*) override;
  grpc::Status ReleaseWindow(grpc::ServerContext*, const v1::ReleaseWindowRequest*,
                             v1::ReleaseWindowResponse*) override;
  grpc::Status GetSequence(grpc::ServerContext*, const v1::GetSequenceRequest*,
                           v1::GetSequenceResponse*) override;
  grpc::Status CloseSequences(grpc::ServerContext*, const v1::CloseSequencesRequest*,
                              v1::CloseSequencesResponse*) override;

  absl::StatusOr<FakeSequence*> Find(const std::string& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string Add(FakeSequence sequence) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<FakeSequence> Leased(const v1::LeasedBlocks& leased)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Begin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run(const v1::AttentionParameters& parameters, uint32_t layer, const v1::AttendItem& item,
           v1::AttendResult* result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::DecodeResponse Step(const v1::DecodeOpen& open, const v1::DecodeRequest& request)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const NamespaceHandle name_space_;
  const Source source_;
  mutable absl::Mutex mutex_;
  std::map<std::string, FakeSequence> sequences_ ABSL_GUARDED_BY(mutex_);
  uint32_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  bool has_memory_ ABSL_GUARDED_BY(mutex_) = true;
  bool dead_ ABSL_GUARDED_BY(mutex_) = false;
  int cut_now_ ABSL_GUARDED_BY(mutex_) = 0;  // Moves on when all streams are to end.
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  bool leases_forgotten_ ABSL_GUARDED_BY(mutex_) = false;
  int streams_to_cut_ ABSL_GUARDED_BY(mutex_) = 0;
  int answers_first_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<absl::Status> open_failures_ ABSL_GUARDED_BY(mutex_);
  std::vector<absl::Status> stream_failures_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::AttendResult> item_failures_ ABSL_GUARDED_BY(mutex_);
  std::function<void(v1::DecodeResponse*)> bend_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> request_ids_ ABSL_GUARDED_BY(mutex_);
  int opens_ ABSL_GUARDED_BY(mutex_) = 0;
  int streams_ ABSL_GUARDED_BY(mutex_) = 0;
  int steps_ ABSL_GUARDED_BY(mutex_) = 0;
  int items_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace cairn::testing
