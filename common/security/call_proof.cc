#include "common/security/call_proof.h"

#include <grpc/grpc_security_constants.h>

#include "common/rpc/caller_identity.h"

namespace cairn {
namespace {

constexpr char kAuthorizationMetadata[] = "authorization";

absl::string_view View(grpc::string_ref text) { return {text.data(), text.size()}; }

std::vector<absl::string_view> ValuesOf(const grpc::ServerContextBase& context, const char* name) {
  std::vector<absl::string_view> values;
  const auto range = context.client_metadata().equal_range(name);
  for (auto it = range.first; it != range.second; ++it) values.push_back(View(it->second));
  return values;
}

}  // namespace

CallProof CallProof::Of(const grpc::ServerContextBase& context) {
  CallProof proof;
  proof.authorization = ValuesOf(context, kAuthorizationMetadata);
  proof.tenant = ValuesOf(context, kTenantMetadata);
  proof.held = context.auth_context();
  if (proof.held == nullptr) return proof;
  // gRPC sets it only for a certificate with exactly one URI that is a valid SPIFFE id.
  const std::vector<grpc::string_ref> ids =
      proof.held->FindPropertyValues(GRPC_PEER_SPIFFE_ID_PROPERTY_NAME);
  if (ids.size() == 1) proof.spiffe_id = View(ids.front());
  for (const grpc::string_ref& name : proof.held->FindPropertyValues(GRPC_X509_CN_PROPERTY_NAME)) {
    proof.common_names.push_back(View(name));
  }
  return proof;
}

}  // namespace cairn
