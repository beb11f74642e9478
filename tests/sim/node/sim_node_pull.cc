// SimNode: blocks from another node, through the product's BlockPuller.
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "cache_node/pull/block_puller.h"
#include "common/rpc/namespace_conversion.h"
#include "common/rpc/prompt_conversion.h"
#include "tests/sim/node/peer_store.h"
#include "tests/sim/node/sim_node.h"

namespace cairn::sim {
namespace {

// In ten thousand, after each frame.
constexpr uint32_t kBreakChance = 300;
constexpr uint32_t kClearChance = 200;

class NoSecondAttempt final : public RetryWait {
 public:
  bool WaitFor(absl::Duration /*wait*/) override { return false; }
};

}  // namespace

void SimNode::Pull(const SimNode& peer, const PullWish& wish, Dice* dice) {
  RegisterForPull(wish);
  const node::PullTarget target{wish.scope.tenant, wish.name_space->fingerprint()};
  std::set<BlockKey> told;
  PeerStore source(peer.store(), [&](const BlockKey& key) -> absl::Status {
    const node::BlockRecords now = store_->DescribeBlocks(
        target.tenant, target.fingerprint, {&key, 1}, std::numeric_limits<uint64_t>::max());
    if (now.blocks[0].state == node::BlockState::kHost && told.insert(key).second) {
      world_->witnesses.OnPulled({.node = parts_.life,
                                  .fingerprint = target.fingerprint,
                                  .tenant = target.tenant,
                                  .key = key,
                                  .written_unix_ms = now.blocks[0].provenance.written_unix_ms});
    }
    if (dice->Chance(kClearChance)) ClearDuringPull(wish);
    if (dice->Chance(kBreakChance)) return absl::UnavailableError("the transfer breaks");
    return absl::OkStatus();
  });
  node::ByteRate unlimited(0, world_->scheduler.clock());
  NoSecondAttempt wait;
  node::PullBatch::Parts parts;
  parts.store = store_.get();
  parts.fences = &fences_;
  parts.rate = &unlimited;
  parts.wait = &wait;
  node::BlockPuller puller(parts, world_->scheduler.clock());
  std::string outcomes;
  const absl::Status source_status = puller.Pull(
      target, &source, wish.keys, wish.keys, [&](size_t /*index*/, node::PullOutcome outcome) {
        absl::StrAppend(&outcomes, " ", node::PullOutcomeName(outcome));
      });
  world_->log.Note(
      absl::StrCat(node_id(), " pulled", source_status.ok() ? ":" : " in part:", outcomes));
}

template <typename Request, typename Response>
void SimNode::CallHere(Method method, const PullWish& wish, const Request& request,
                       absl::Status (node::NodeCalls::*call)(const Caller&, const Request&,
                                                             Response*)) {
  const Caller caller{.id = "worker", .tenant = wish.scope.tenant, .roles = {Role::kWorker}};
  Response response;
  const absl::Status status = (calls_.*call)(caller, request, &response);
  world_->witnesses.OnNodeCall({parts_.life, method, caller, request, status, response});
}

void SimNode::RegisterForPull(const PullWish& wish) {
  v1::RegisterNamespaceRequest request;
  request.set_name(wish.name_space->name());
  *request.mutable_fields() = NamespaceToProto(wish.name_space->fields());
  CallHere(Method::kRegisterNamespace, wish, request, &node::NodeCalls::RegisterNamespace);
}

// The tenant clears the very scope: what is on its way must not come any more.
void SimNode::ClearDuringPull(const PullWish& wish) {
  v1::ClearScopeRequest request;
  request.set_fingerprint(std::string(wish.name_space->fingerprint().view()));
  *request.mutable_scope() = ScopeToProto(wish.scope);
  CallHere(Method::kClearScope, wish, request, &node::NodeCalls::ClearScope);
}

}  // namespace cairn::sim
