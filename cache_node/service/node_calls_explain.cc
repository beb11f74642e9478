// NodeCalls: why a prompt's blocks are not there.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_node/service/lookup_plan.h"
#include "cache_node/service/node_calls.h"
#include "common/base/check.h"
#include "common/rpc/field_status.h"
#include "common/rpc/id_conversion.h"
#include "common/rpc/namespace_conversion.h"
#include "common/rpc/prompt_tenant.h"

namespace cairn::node {
namespace {

constexpr size_t kNamespacesMax = 8;

void FillDivergence(const ExplainQuery& query, const ExplainAnswer& answer,
                    v1::Divergence* message) {
  const ExplainAnswer::Nearest& nearest = *answer.nearest;
  const size_t first = size_t{answer.present} * answer.block_tokens;
  const absl::Span<const uint32_t> asked =
      absl::MakeConstSpan(query.tokens).subspan(first, answer.block_tokens);
  CAIRN_CHECK(nearest.tokens.size() == asked.size());
  message->set_candidates(answer.candidates);
  message->set_held_key(std::string(nearest.key.view()));
  message->set_position(first + nearest.common_tokens);
  // Equal tokens under another key: what token ids do not say differs (media, embeddings).
  if (nearest.common_tokens == asked.size()) return;
  message->set_asked_token(asked[nearest.common_tokens]);
  message->set_held_token(nearest.tokens[nearest.common_tokens]);
  // Tokens until the rest is equal; 0: nothing is.
  if (nearest.common_at_end > 0) {
    message->set_differing_tokens(answer.block_tokens - nearest.common_tokens -
                                  nearest.common_at_end);
  }
}

}  // namespace

absl::Status NodeCalls::ExplainPrompt(const Caller& caller, const v1::ExplainPromptRequest& request,
                                      v1::ExplainPromptResponse* response) {
  const absl::StatusOr<Fingerprint> fingerprint = FingerprintFromProto(request.fingerprint());
  if (!fingerprint.ok()) return fingerprint.status();
  const v1::Prompt* const prompts[] = {&request.prompt()};
  const absl::StatusOr<std::string> tenant = TenantOfPrompts(prompts, caller);
  if (!tenant.ok()) return tenant.status();
  if (absl::Status status = Admit(*tenant); !status.ok()) return status;
  const Namespace* const name_space = FindNamespace(*tenant, *fingerprint);
  absl::StatusOr<PromptPlan> plan =
      MakePromptPlan(request.prompt(), caller, *tenant, name_space, *parts_.hasher);
  if (!plan.ok()) return InField("prompt", plan.status());
  response->set_node_id(parts_.facts->identity().node_id);
  if (name_space == nullptr) return ExplainNamespace(*tenant, request, response);

  ExplainQuery query;
  query.keys = std::move(plan->query.keys);
  query.tokens = std::move(plan->query.tokens);
  query.regions = std::move(plan->regions);
  const ExplainAnswer answer = parts_.store->Explain(*tenant, *fingerprint, query);
  response->set_namespace_known(answer.namespace_known);
  response->set_block_tokens(answer.block_tokens);
  response->set_blocks_total(static_cast<uint32_t>(query.keys.size()));
  response->set_blocks_present(answer.present);
  response->set_looked_at(answer.looked_at);
  response->set_partial(answer.partial);
  if (answer.present == query.keys.size()) return absl::OkStatus();
  response->set_state(static_cast<v1::BlockState>(answer.state));
  if (answer.removed_ago.has_value()) {
    response->set_removed_ms_ago(
        static_cast<uint64_t>(absl::ToInt64Milliseconds(*answer.removed_ago)));
  }
  if (answer.nearest.has_value()) FillDivergence(query, answer, response->mutable_divergence());
  if (answer.other_scope.has_value()) {
    const size_t region = static_cast<size_t>(
        std::count_if(query.regions.begin(), query.regions.end(),
                      [&](const auto& one) { return one.first_block <= answer.present; }) -
        1);
    const v1::Scope& asked = request.prompt().regions(static_cast<int>(region)).scope();
    v1::OtherScope* const other = response->mutable_other_scope();
    other->set_adapter(answer.other_scope->adapter);
    other->set_adapter_differs(answer.other_scope->adapter != asked.adapter());
    other->set_salt_differs(answer.other_scope->salt != asked.salt());
  }
  return absl::OkStatus();
}

absl::Status NodeCalls::ExplainNamespace(absl::string_view tenant,
                                         const v1::ExplainPromptRequest& request,
                                         v1::ExplainPromptResponse* response) const {
  response->set_state(v1::BLOCK_STATE_NAMESPACE_UNKNOWN);
  if (!request.has_fields()) return absl::OkStatus();
  const absl::StatusOr<Namespace> fields = NamespaceFromProto(request.fields());
  if (!fields.ok()) return InField("fields", fields.status());
  for (auto& [name, difference] : parts_.store->NamespacesNear(tenant, *fields, kNamespacesMax)) {
    v1::NamespaceDifference* const one = response->add_namespaces();
    one->set_name(std::move(name));
    one->set_difference(std::move(difference));
  }
  return absl::OkStatus();
}

}  // namespace cairn::node
