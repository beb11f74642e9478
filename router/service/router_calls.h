// RouterCalls: what each call of the router does, without RPC: checks the message, asks the core,
// fills the answer.
//
// Keys are hashed from tokens here, outside the core's lock. The service's shells resolve who calls
// and map the status. Thread-safe. Borrows its parts, which must outlive it.
//
// A call that fails books and counts nothing: INVALID_ARGUMENT or PERMISSION_DENIED naming the
// field, or what the core says (UNAVAILABLE, RESOURCE_EXHAUSTED). An unknown namespace, a prefix
// that nobody has and a booking that is over are answers, not failures.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/v1/router.pb.h"
#include "common/identity/block_hasher.h"
#include "common/rpc/caller_identity.h"
#include "common/server/line_log.h"
#include "router/core/router_core.h"
#include "router/explain/changing_starts.h"
#include "router/membership/member_source.h"
#include "router/policy/policy_registry.h"
#include "router/replication/replicator.h"
#include "router/service/node_followers.h"

namespace cairn::router {

class RouterCalls {
 public:
  struct Parts {
    RouterCore* core = nullptr;
    const BlockHasher* hasher = nullptr;
    const RoutePolicySet* policies = nullptr;
    // Whom to list as followed; null: nobody.
    const NodeFollowers* followers = nullptr;
    // Where the nodes come from; null: a list that does not change.
    const MemberSource* members = nullptr;
    // Told of each prompt that is routed; null: no copies are made.
    Replicator* replicator = nullptr;
    // Told of each of which nobody has anything.
    ChangingStarts* changing_starts = nullptr;
    // For people; called on several threads. May be null.
    LineLog log = nullptr;
  };

  explicit RouterCalls(const Parts& parts) : parts_(parts) {}

  absl::Status Route(const Caller& caller, const v1::RouteRequest& request,
                     v1::RouteResponse* response) const;
  absl::Status LookupPrefix(const Caller& caller, const v1::LookupPrefixRequest& request,
                            v1::LookupPrefixResponse* response) const;
  absl::Status ReportOutcome(const Caller& caller, const v1::ReportOutcomeRequest& request,
                             v1::ReportOutcomeResponse* response) const;
  absl::Status ListReplicas(const Caller& caller, const v1::ListReplicasRequest& request,
                            v1::ListReplicasResponse* response) const;

 private:
  struct HashedPrompt {
    // Whose it is.
    std::string tenant;
    std::vector<BlockKey> keys;
    size_t public_blocks = 0;  // Leading ones, as far as regions say whose they are.
    // In its regions.
    uint64_t tokens = 0;
    // Of its first block, and the 16 bytes of the region that this is in; no tokens of a prompt by
    // keys.
    std::vector<uint32_t> first_block;
    BlockKey root;
  };

  // Whether it begins with a value that changes: said once, to people.
  void NoteStart(const HashedPrompt& prompt, const RouteAnswer& answer) const;
  // The keys of the prompt's full blocks; none when it came as tokens of an unknown namespace.
  absl::StatusOr<HashedPrompt> KeysOf(const Caller& caller, const Fingerprint& fingerprint,
                                      const v1::Prompt& prompt) const;

  const Parts parts_;
};

}  // namespace cairn::router
