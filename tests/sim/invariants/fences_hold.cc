#include "tests/sim/invariants/fences_hold.h"

#include <google/protobuf/message.h>

#include "absl/strings/str_cat.h"
#include "cache_node/store/scope_digest.h"
#include "cairn/v1/cache_node.pb.h"

namespace cairn::sim {
namespace {

template <typename Message>
const Message* As(const google::protobuf::Message& message) {
  return google::protobuf::DynamicCastToGenerated<Message>(&message);
}

}  // namespace

void FencesHold::OnNodeCall(const SeenCall& call) {
  if (!call.status.ok()) return;
  Removal removal;
  removal.at_unix_ms = absl::ToUnixMillis(wall_now());
  if (const auto* clear = As<v1::ClearScopeRequest>(call.request)) {
    removal.fingerprint = *Fingerprint::FromBytes(clear->fingerprint());
    removal.tenant = call.caller.tenant;
    removal.scope_digest =
        node::ScopeDigest({removal.tenant, clear->scope().adapter(), clear->scope().salt()});
  } else if (const auto* retire = As<v1::RetireNamespaceRequest>(call.request)) {
    removal.fingerprint = *Fingerprint::FromBytes(retire->fingerprint());
  } else {
    return;
  }
  removals_[call.server].push_back(std::move(removal));
}

void FencesHold::OnPulled(const SeenPull& pull) {
  for (const Removal& removal : removals_[pull.node]) {
    if (removal.fingerprint != pull.fingerprint || removal.at_unix_ms < pull.written_unix_ms) {
      continue;
    }
    const bool of_it = !removal.scope_digest.has_value() ||
                       (removal.tenant == pull.tenant &&
                        book().Find(pull.key)->scope_digest == *removal.scope_digest);
    if (!of_it) continue;
    Violated(absl::StrCat(NodeName(pull.node), " pulls block ", ShortHex(pull.key.view()), " of ",
                          pull.tenant, ", written ", removal.at_unix_ms - pull.written_unix_ms,
                          " ms before it was removed there"));
  }
}

}  // namespace cairn::sim
