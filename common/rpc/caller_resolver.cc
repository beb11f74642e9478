#include "common/rpc/caller_resolver.h"

namespace cairn {

absl::StatusOr<Caller> InsecureCallerResolver::Resolve(const grpc::ServerContextBase&,
                                                       absl::string_view) const {
  Caller caller;
  // Not the peer's address: a client that reconnects to repeat a request is the same caller.
  caller.id = "insecure";
  caller.tenant = kPublicTenant;
  caller.roles = RoleSet::All();
  return caller;
}

}  // namespace cairn
