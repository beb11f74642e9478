// FloodWriter: one of very many clients that put a large block at once, over one connection each.
//
// As thin as a client can be, so that a thousand fit into a test: all writers of a process send the
// same memory, and gRPC borrows it. It honours the node's retry delays until its time is up. One
// thread drives a writer; it blocks.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cairn/v1/cache_node.grpc.pb.h"
#include "client/cpp/namespace_handle.h"
#include "client/cpp/prompt.h"
#include "client/cpp/retry_wait.h"
#include "common/base/bytes16.h"

namespace cairn::testing {

class FloodWriter {
 public:
  enum class Outcome {
    kLanded,   // Committed, and the node said that it is present.
    kRefused,  // Refused with a retry delay, the last time too.
    kUnknown,  // ABORTED: the node does not know the token (Blind only).
    kFailed,   // Anything else; see failure().
  };

  // Writer number `number` puts a prompt of one block, of `payload`, which is never freed. Borrows
  // the namespace and the wait.
  FloodWriter(const std::string& node, uint32_t number, const NamespaceHandle* name_space,
              absl::Span<const uint8_t> payload, RetryWait* wait);

  // Whether the connection stands within `timeout`.
  bool Connect(absl::Duration timeout);

  // Before each frame but the first: a slow client. Before it begins.
  void WaitBetweenFrames(absl::Duration wait) { frame_wait_ = wait; }

  // Reserves, writes and commits; again after each refusal, until `deadline`.
  Outcome Put(absl::Time deadline);
  // Sends the whole payload at once under a token that nobody gave out.
  Outcome Blind(absl::Time deadline);

  // Refusals with a delay, over all tries.
  uint64_t refusals() const { return refusals_; }
  const std::string& failure() const { return failure_; }

 private:
  // One try. OK: landed.
  absl::Status TryPut(absl::Time deadline);
  absl::StatusOr<TokenId> Reserve(absl::Time deadline);
  absl::Status Write(const TokenId& token, absl::Time deadline);
  absl::Status Commit(const TokenId& token, absl::Time deadline);
  void Abort(const TokenId& token, absl::Time deadline);
  grpc::ByteBuffer FrameOf(const TokenId& token, uint32_t layer) const;

  const NamespaceHandle* const name_space_;
  const absl::Span<const uint8_t> payload_;
  RetryWait* const wait_;
  std::vector<uint32_t> tokens_;
  BlockKey key_;
  std::vector<uint64_t> digests_;           // One a layer.
  std::shared_ptr<grpc::Channel> channel_;  // Shared by gRPC's stubs.
  v1::CacheNode::Stub stub_;
  grpc::GenericStub raw_stub_;
  absl::Duration frame_wait_ = absl::ZeroDuration();
  uint64_t refusals_ = 0;
  std::string failure_;
};

}  // namespace cairn::testing
