#include "common/security/call_gate.h"

#include <memory>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/security/audit.h"
#include "common/security/rpc_rules.h"
#include "common/security/text_lines.h"
#include "common/wire/limits.h"

namespace cairn {
namespace {

constexpr absl::string_view kBearer = "bearer ";

absl::Status Unknown(absl::string_view why) { return absl::UnauthenticatedError(why); }

// Which tenant the call acts for where no scope says it.
absl::StatusOr<std::string> ActingTenant(const CallProof& proof, const AccessEntry& entry,
                                         const Caller& caller) {
  if (proof.tenant.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat("the metadata ", kTenantMetadata, " comes ",
                                                   proof.tenant.size(), " times; name one tenant"));
  }
  if (proof.tenant.empty()) {
    const bool has_one = !entry.all_tenants && entry.tenants.size() == 1;
    return has_one ? entry.tenants.front() : std::string();
  }
  if (proof.tenant.front().empty() || proof.tenant.front().size() > kNameBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("the metadata ", kTenantMetadata,
                                                   " must hold 1 to ", kNameBytesMax, " bytes"));
  }
  return TenantFor(caller, proof.tenant.front(), TenantUse::kWrite);
}

}  // namespace

absl::StatusOr<std::string> CallGate::TokenIdentity(absl::string_view authorization) const {
  if (!absl::StartsWithIgnoreCase(authorization, kBearer)) {
    return Unknown("the metadata authorization must be: Bearer TOKEN");
  }
  if (tokens_ == nullptr) return Unknown("tokens are not taken here; use a client certificate");
  const std::shared_ptr<const TokenTable> tokens = tokens_->Get();
  const std::optional<absl::string_view> name = tokens->Find(authorization.substr(kBearer.size()));
  if (!name.has_value()) return Unknown("the bearer token is not, or no longer, a good one");
  return absl::StrCat("token:", *name);
}

absl::StatusOr<std::string> CallGate::IdentityOf(const CallProof& proof) const {
  if (proof.authorization.size() > 1) {
    return Unknown("the metadata authorization comes more than once");
  }
  if (!proof.authorization.empty()) return TokenIdentity(proof.authorization.front());
  if (!proof.spiffe_id.empty()) return std::string(proof.spiffe_id);
  if (proof.common_names.size() == 1 && !proof.common_names.front().empty()) {
    return absl::StrCat("cn:", proof.common_names.front());
  }
  return Unknown(tokens_ == nullptr
                     ? "the call proves no identity; use a client certificate with a SPIFFE id or "
                       "one common name"
                     : "the call proves no identity; send a bearer token, or use a client "
                       "certificate");
}

absl::StatusOr<Caller> CallGate::Admit(const CallProof& proof, absl::string_view method) const {
  const absl::StatusOr<std::string> identity = IdentityOf(proof);
  if (!identity.ok()) return identity.status();
  absl::StatusOr<Caller> caller = AdmitAs(*identity, proof, method);
  if (!caller.ok()) return WithIdentity(caller.status(), *identity);
  return caller;
}

absl::StatusOr<Caller> CallGate::AdmitAs(const std::string& identity, const CallProof& proof,
                                         absl::string_view method) const {
  const std::shared_ptr<const AccessTable> access = access_->Get();
  const AccessEntry* const entry = access->Find(identity);
  if (entry == nullptr) {
    return absl::PermissionDeniedError(
        absl::StrCat("the identity ", Shown(identity), " is not in the access file"));
  }
  const RpcRule* const rule = FindRpcRule(method);
  if (rule == nullptr) return absl::UnimplementedError(absl::StrCat("no method ", method));
  Caller caller;
  caller.id = identity;
  caller.roles = entry->roles;
  if (!caller.roles.HasAnyOf(rule->roles)) {
    return absl::PermissionDeniedError(absl::StrCat(method, " is for the role ",
                                                    NamesOf(rule->roles), "; ", caller.id, " is ",
                                                    NamesOf(caller.roles)));
  }
  caller.tenants = entry->tenants;
  caller.all_tenants = entry->all_tenants;
  absl::StatusOr<std::string> tenant = ActingTenant(proof, *entry, caller);
  if (!tenant.ok()) return tenant.status();
  caller.tenant = *std::move(tenant);
  if (rule->acts_for_tenant) {
    const absl::Status named = TenantFor(caller, "", TenantUse::kRead).status();
    if (!named.ok()) return named;
  }
  return caller;
}

}  // namespace cairn
