// PeerSource: a peer as a PullSource, over gRPC.
//
// Calls go out with this node's own credentials and name the tenant that it acts for
// (cairn-tenant): the peer's access file says for which a node may. Each call is bounded in time,
// and Cancel ends those that run, and all later ones, at once. Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "cache_node/pull/pull_source.h"
#include "cairn/v1/pull.pb.h"
#include "client/cpp/client_options.h"
#include "client/cpp/client_parts.h"
#include "client/cpp/node_link.h"
#include "client/cpp/raw_call.h"
#include "common/security/client_security.h"

namespace cairn::node {

class PeerSource final : public PullSource {
 public:
  static constexpr absl::Duration kCallMax = absl::Seconds(5);
  // Of a wait for what is on the peer's disk, within the call.
  static constexpr absl::Duration kPromoteMax = absl::Seconds(10);
  // One batch.
  static constexpr absl::Duration kFetchMax = absl::Minutes(2);
  // From one frame to the next: a peer that is stopped, or cut off, is not to hold a pull thread,
  // of which there are few, for all of that.
  static constexpr absl::Duration kSilenceMax = absl::Seconds(10);

  // Borrows security and parts, which outlive it. REQUIRES: options are valid.
  PeerSource(std::string node_id, const ClientOptions& options, const ClientSecurity* security,
             const ClientParts& parts);

  // FAILED_PRECONDITION when another node answers at the peer's address.
  absl::StatusOr<BlockRecords> Describe(const PullTarget& target,
                                        absl::Span<const BlockKey> keys) override;
  absl::Status Promote(const PullTarget& target, absl::Span<const BlockKey> keys) override;
  absl::Status Fetch(const PullTarget& target, absl::Span<const BlockKey> keys, Sink sink) override;
  void ReportMismatch(const PullTarget& target, const BlockKey& key,
                      const SegmentId& segment) override;

  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Running;

  template <typename Request, typename Response>
  absl::Status Call(const PullTarget& target, absl::Duration timeout,
                    NodeLink::Method<Request, Response> method, const Request& request,
                    Response* response) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string node_id_;
  const ClientSecurity* const security_;
  NodeLink link_;
  absl::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<RawCall*> transfers_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<grpc::ClientContext*> calls_ ABSL_GUARDED_BY(mutex_);
};

// Records as a peer sent them; INTERNAL, naming the record, for what makes no sense.
absl::StatusOr<BlockRecords> RecordsFromProto(const v1::DescribeBlocksResponse& message,
                                              size_t keys);

}  // namespace cairn::node
