#include "tests/sim/invariants/foreign_ids_refused.h"

#include <google/protobuf/message.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace cairn::sim {
namespace {

// The lease or token that the call is about; empty: none.
std::string IdOf(const google::protobuf::Message& request) {
  using google::protobuf::DynamicCastToGenerated;
  if (const auto* end = DynamicCastToGenerated<v1::EndLeaseRequest>(&request)) return end->lease();
  if (const auto* get = DynamicCastToGenerated<v1::GetLeaseRequest>(&request)) return get->lease();
  if (const auto* renew = DynamicCastToGenerated<v1::RenewLeaseRequest>(&request)) {
    return renew->lease();
  }
  if (const auto* commit = DynamicCastToGenerated<v1::CommitRequest>(&request)) {
    return commit->token();
  }
  if (const auto* abort = DynamicCastToGenerated<v1::AbortRequest>(&request)) {
    return abort->token();
  }
  return "";
}

}  // namespace

void ForeignIdsRefused::OnNodeCall(const SeenCall& call) {
  const std::string id = IdOf(call.request);
  if (id.empty() || absl::IsAborted(call.status)) return;
  const Truth::Lease* lease = truth().FindLease(call.server, id);
  const Truth::Token* token = truth().FindToken(call.server, id);
  const std::string owner = lease != nullptr   ? lease->tenant
                            : token != nullptr ? token->tenant
                                               : call.caller.tenant;
  if (owner == call.caller.tenant) return;
  Violated(absl::StrCat(NodeName(call.server), " answers ", call.caller.tenant, "'s ",
                        MethodName(call.method), " on ", ShortHex(id), " of ", owner, " with ",
                        call.status.ToString()));
}

}  // namespace cairn::sim
