#include "cache_node/service/lookup_plan.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_node/service/store_messages.h"
#include "cache_node/store/scope_digest.h"
#include "common/base/check.h"
#include "common/identity/key_chain.h"
#include "common/rpc/field_status.h"
#include "common/rpc/id_conversion.h"
#include "common/rpc/prompt_conversion.h"
#include "common/wire/limits.h"

namespace cairn::node {
namespace {

absl::Status CheckTotals(const v1::LookupRequest& request) {
  if (request.prompts().empty()) {
    return absl::InvalidArgumentError("prompts: none; give at least one");
  }
  if (request.prompts_size() > static_cast<int>(kPromptsPerLookupMax)) {
    return absl::InvalidArgumentError(
        absl::StrCat("prompts: ", request.prompts_size(), ", at most ", kPromptsPerLookupMax));
  }
  uint64_t tokens = 0;
  for (const v1::Prompt& prompt : request.prompts()) {
    for (const v1::Region& region : prompt.regions()) {
      tokens += static_cast<uint64_t>(region.tokens_size());
    }
  }
  if (tokens > kTokensPerCallMax) {
    return absl::InvalidArgumentError(absl::StrCat("prompts: ", tokens, " tokens, at most ",
                                                   kTokensPerCallMax,
                                                   "; look long prompts up by keys"));
  }
  return absl::OkStatus();
}

// The tokens of the full blocks, when all regions give them; else none.
std::vector<uint32_t> TokensOfBlocks(const std::vector<Region>& regions, size_t count) {
  std::vector<uint32_t> tokens;
  for (const Region& region : regions) {
    if (region.tokens.empty()) return {};
    tokens.insert(tokens.end(), region.tokens.begin(), region.tokens.end());
  }
  if (tokens.size() < count) return {};
  tokens.resize(count);
  return tokens;
}

absl::StatusOr<LeaseWish> ToLeaseWish(const v1::LeaseOptions& options) {
  if (options.readers() < 1 || options.readers() > kReadersPerLeaseMax) {
    return absl::InvalidArgumentError(absl::StrCat("lease.readers: ", options.readers(),
                                                   ", must be from 1 to ", kReadersPerLeaseMax));
  }
  return LeaseWish{.readers = options.readers(), .ttl = absl::Milliseconds(options.ttl_ms())};
}

}  // namespace

absl::StatusOr<PromptPlan> MakePromptPlan(const v1::Prompt& message, const Caller& caller,
                                          const std::string& tenant, const Namespace* name_space,
                                          const BlockHasher& hasher) {
  absl::StatusOr<PromptFields> prompt = PromptFromProto(message);
  if (!prompt.ok()) return prompt.status();
  PromptPlan plan;
  PromptQuery& query = plan.query;
  query.keys = std::move(prompt->keys);
  for (Region& region : prompt->regions) {
    if (region.scope.tenant.empty()) region.scope.tenant = tenant;
    const absl::Status may = TenantFor(caller, region.scope.tenant, TenantUse::kRead).status();
    if (!may.ok()) return may;
  }
  if (prompt->regions.empty() || name_space == nullptr) return plan;
  const absl::StatusOr<KeyRules> rules = KeyRulesOf(*name_space);
  CAIRN_CHECK_OK(rules.status());  // It was registered.
  absl::StatusOr<std::vector<BlockKey>> keys =
      PromptKeys(hasher, *rules, prompt->regions, prompt->extras);
  if (!keys.ok()) return keys.status();
  query.keys = *std::move(keys);
  query.tokens = TokensOfBlocks(prompt->regions, query.keys.size() * rules->block_tokens);
  // A first of two regions is whole blocks: PromptKeys saw to it.
  size_t first_block = 0;
  for (const Region& region : prompt->regions) {
    plan.regions.push_back({.first_block = first_block,
                            .scope_digest = ScopeDigest(region.scope),
                            .is_public = region.scope.tenant == kPublicTenant});
    first_block += rules->key_scheme == KeyScheme::kCairn
                       ? region.tokens.size() / rules->block_tokens
                       : region.external_ids.size();
  }
  return plan;
}

absl::StatusOr<LookupPlan> MakeLookupPlan(const v1::LookupRequest& request, const Caller& caller,
                                          const std::string& tenant, const Namespace* name_space,
                                          const BlockHasher& hasher) {
  LookupPlan plan;
  plan.tenant = tenant;
  const absl::StatusOr<Fingerprint> fingerprint = FingerprintFromProto(request.fingerprint());
  if (!fingerprint.ok()) return fingerprint.status();
  plan.fingerprint = *fingerprint;
  if (absl::Status status = CheckTotals(request); !status.ok()) return status;
  if (absl::Status status = CheckWait(request.wait_ms()); !status.ok()) return status;
  plan.wait = absl::Milliseconds(request.wait_ms());
  if (request.has_lease()) {
    absl::StatusOr<LeaseWish> wish = ToLeaseWish(request.lease());
    if (!wish.ok()) return wish.status();
    plan.query.lease = *wish;
  }
  plan.query.touch = request.touch();
  plan.query.promote = request.promote();
  size_t keys = 0;
  for (int i = 0; i < request.prompts_size(); ++i) {
    absl::StatusOr<PromptPlan> prompt =
        MakePromptPlan(request.prompts(i), caller, tenant, name_space, hasher);
    if (!prompt.ok()) return InField(absl::StrCat("prompts[", i, "]"), prompt.status());
    keys += prompt->query.keys.size();
    if (keys > kKeysPerLookupMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("prompts: over ", kKeysPerLookupMax, " blocks; ask in several calls"));
    }
    plan.query.prompts.push_back(std::move(prompt->query));
  }
  return plan;
}

bool IsPending(const LookupAnswer& answer) {
  return std::any_of(answer.prompts.begin(), answer.prompts.end(), [](const PromptAnswer& prompt) {
    return prompt.present < prompt.blocks.size() &&
           prompt.blocks[prompt.present].state == BlockState::kPending;
  });
}

void ToMessage(const LookupAnswer& answer, v1::LookupResponse* message) {
  message->set_namespace_known(answer.namespace_known);
  for (const PromptAnswer& prompt : answer.prompts) {
    CAIRN_CHECK(prompt.present <= prompt.blocks.size() && prompt.leased <= prompt.present);
    v1::PromptResult* result = message->add_results();
    result->set_blocks_total(static_cast<uint32_t>(prompt.blocks.size()));
    result->set_blocks_present(prompt.present);
    result->set_tokens_present(uint64_t{prompt.present} * answer.block_tokens);
    result->set_blocks_leased(prompt.leased);
    v1::BlockRun* run = nullptr;
    for (size_t i = 0; i < prompt.blocks.size(); ++i) {
      const BlockAnswer& block = prompt.blocks[i];
      // Who leases wants to know where it came from.
      BlockState from = block.state;
      if (i < prompt.leased && block.from_disk) from = BlockState::kDisk;
      if (i < prompt.leased && block.from_device) from = BlockState::kDevice;
      const auto state = static_cast<v1::BlockState>(from);
      if (run == nullptr || run->state() != state) {
        run = result->add_runs();
        run->set_state(state);
      }
      run->set_count(run->count() + 1);
      run->set_pending_ms(std::max(run->pending_ms(), ToMilliseconds(block.pending_for)));
    }
  }
  if (!answer.lease.has_value()) return;
  message->set_lease(std::string(answer.lease->view()));
  message->set_lease_ttl_ms(ToMilliseconds(answer.lease_ttl));
}

}  // namespace cairn::node
