// DecodeClient: what a program asks of one node's served decode.
//
// Connections, security and deadlines are those of CacheNodeClient's options; steps and small calls
// have a connection each. Calls that are safe to repeat are, as RetryOptions say: opens and forks
// under one request id. Failures are the contract's: RESOURCE_EXHAUSTED with a retry delay when a
// sequence does not fit, FAILED_PRECONDITION where the node has no memory for sequences, ABORTED
// for a sequence that is over or another's, UNAVAILABLE, DEADLINE_EXCEEDED; INTERNAL when an answer
// breaks the contract.
//
// Thread-safe; calls block the caller. Streams borrow it: it outlives them. It keeps no sequence:
// whoever opened one closes it, or it ends when it was idle for long enough.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cairn/v1/decode.grpc.pb.h"
#include "client/cpp/call_runner.h"
#include "client/cpp/client_options.h"
#include "client/cpp/client_parts.h"
#include "client/cpp/decode/decode_stream.h"
#include "client/cpp/decode/decode_types.h"
#include "client/cpp/namespace_handle.h"
#include "client/cpp/prompt.h"

namespace cairn {

struct OpenSequenceOptions {
  // Pins blocks from this one on, at most so many; 0: all that are present.
  uint32_t first_block = 0;
  uint32_t blocks_max = 0;
  // Tokens that may be appended; 0: it is only read.
  uint64_t reserve_tokens = 0;
  // Longest wait for blocks that are loading, or being written.
  absl::Duration wait = absl::ZeroDuration();
  // Zero takes the node's default.
  absl::Duration idle = absl::ZeroDuration();
  // Wait and ask again, within the deadline, when the node has no room now.
  bool wait_when_exhausted = false;
};

struct OpenedSequence {
  SequenceId id;
  TokenRange pinned;  // By blocks of the cache.
  uint64_t reserved_tokens = 0;
};

struct ForkedSequences {
  std::vector<SequenceId> ids;
  uint64_t length_tokens = 0;
};

class DecodeClient {
 public:
  // Borrows the parts; they outlive it. REQUIRES: ValidateClientOptions says OK.
  DecodeClient(const ClientOptions& options, const ClientParts& parts);

  DecodeClient(const DecodeClient&) = delete;
  DecodeClient& operator=(const DecodeClient&) = delete;

  const std::string& target() const { return options_.target; }

  absl::StatusOr<OpenedSequence> OpenSequence(const NamespaceHandle& name_space,
                                              const Prompt& prompt,
                                              const OpenSequenceOptions& options = {});
  absl::StatusOr<ForkedSequences> ForkSequence(const SequenceId& sequence, uint32_t count,
                                               uint64_t reserve_tokens);
  // The length that is left.
  absl::StatusOr<uint64_t> TruncateSequence(const SequenceId& sequence, uint64_t length_tokens);
  // Blocks given back.
  absl::StatusOr<uint64_t> ReleaseWindow(const SequenceId& sequence, uint64_t before_token,
                                         uint64_t sink_tokens);
  // `once` above zero: one attempt of at most so long, where waiting for a node that may be gone
  // is worse than not knowing.
  absl::StatusOr<v1::GetSequenceResponse> GetSequence(const SequenceId& sequence,
                                                      absl::Duration once = {});
  // How many were open. Any number of them.
  absl::StatusOr<uint64_t> CloseSequences(absl::Span<const SequenceId> sequences,
                                          absl::Duration once = {});

  // Attention over leased blocks, once: one result an item, to be checked (attend_result.h).
  absl::StatusOr<std::vector<v1::AttendResult>> Attend(const v1::AttendRequest& request,
                                                       absl::Duration timeout = {});

  // Begins a stream over `queue`; waits for nothing.
  std::unique_ptr<DecodeStream> OpenStream(CallQueue* queue, const Fingerprint& fingerprint,
                                           absl::Span<const v1::AttentionParameters> parameters,
                                           const DecodeStreamOptions& options = {});

 private:
  template <typename Request, typename Response>
  using Method = grpc::Status (v1::Decode::Stub::*)(grpc::ClientContext*, const Request&,
                                                    Response*);

  template <typename Request, typename Response>
  absl::Status CallOnce(Method<Request, Response> method, const Request& request,
                        absl::Duration remaining, Response* response) const;
  template <typename Request, typename Response>
  absl::Status Call(Method<Request, Response> method, const Request& request,
                    absl::Duration timeout, Response* response) const;
  template <typename Request, typename Response>
  absl::Status CallWithin(Method<Request, Response> method, const Request& request,
                          absl::Duration once, Response* response) const;
  // With a request id of its own for each request, kept for its repetitions.
  template <typename Request, typename Response>
  absl::Status CallById(Method<Request, Response> method, Request* request, absl::Duration timeout,
                        const RetryRules& rules, Response* response) const;

  const ClientOptions options_;
  const Clock* const clock_;
  RandomSource* const random_;
  const CallRunner runner_;
  const std::unique_ptr<v1::Decode::Stub> calls_;
  grpc::GenericStub streams_;
};

}  // namespace cairn
