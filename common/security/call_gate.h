// CallGate: who a call's proof says it is, and whether that caller may make it.
//
//   proof -> identity -> its line of the access file -> role for the method, tenant of the call
//
// A bearer token that is sent is what counts, also beside a certificate: one that is not (any more)
// good is never made up for by something else. Otherwise the certificate's SPIFFE id, or its common
// name where it has none. Thread-safe; takes no lock but for a moment, and does no I/O. Borrows the
// files, which outlive it.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/rpc/caller_resolver.h"
#include "common/security/access_table.h"
#include "common/security/call_proof.h"
#include "common/security/token_table.h"
#include "common/security/watched_file.h"

namespace cairn {

class CallGate final : public CallerResolver {
 public:
  // `tokens` is null where none are taken.
  CallGate(const WatchedFile<AccessTable>* access, const WatchedFile<TokenTable>* tokens)
      : access_(access), tokens_(tokens) {}

  absl::StatusOr<Caller> Resolve(const grpc::ServerContextBase& context,
                                 absl::string_view method) const override {
    return Admit(CallProof::Of(context), method);
  }
  uint64_t Generation() const override {
    return access_->generation() + (tokens_ == nullptr ? 0 : tokens_->generation());
  }

  // UNAUTHENTICATED: it proves no identity. PERMISSION_DENIED: the identity is not listed, has no
  // role for the method, or does not act for the tenant it names. UNIMPLEMENTED: no such method. Of
  // an identity that was proven the status carries it (IdentityIn, audit.h).
  absl::StatusOr<Caller> Admit(const CallProof& proof, absl::string_view method) const;

 private:
  absl::StatusOr<Caller> AdmitAs(const std::string& identity, const CallProof& proof,
                                 absl::string_view method) const;
  absl::StatusOr<std::string> IdentityOf(const CallProof& proof) const;
  absl::StatusOr<std::string> TokenIdentity(absl::string_view authorization) const;

  const WatchedFile<AccessTable>* const access_;
  const WatchedFile<TokenTable>* const tokens_;
};

}  // namespace cairn
