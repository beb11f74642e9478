#include "cache_node/store/reserve_plan.h"

#include "absl/strings/str_cat.h"
#include "cache_node/store/scope_digest.h"
#include "common/identity/extra.h"
#include "common/wire/limits.h"

namespace cairn::node {
namespace {

absl::Status CheckTokens(const KeyRules& rules, const ReserveFields& fields) {
  const bool optional = rules.key_scheme == KeyScheme::kExternal;
  if (optional && fields.tokens.empty()) return absl::OkStatus();
  const size_t wanted = fields.keys.size() * rules.block_tokens;
  if (fields.tokens.size() == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("tokens: ", fields.tokens.size(), " for ", fields.keys.size(), " blocks of ",
                   rules.block_tokens, ": send exactly ", wanted, optional ? ", or none" : ""));
}

absl::Status CheckCairn(const ReserveFields& fields) {
  if (!fields.external_ids.empty()) {
    return absl::InvalidArgumentError(
        "external_ids: the namespace's keys come from tokens (key scheme 1): send none");
  }
  for (const auto& [block, items] : fields.extras) {
    if (block >= fields.keys.size()) {
      return absl::InvalidArgumentError(absl::StrCat("extras: block ", block, " of ",
                                                     fields.keys.size(), ", which count from 0"));
    }
    if (absl::Status status = ValidateExtra(items); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckExternal(const ReserveFields& fields) {
  if (!fields.extras.empty()) {
    return absl::InvalidArgumentError(
        "extras: the namespace's keys come from external ids (key scheme 2): send none");
  }
  if (fields.external_ids.size() != fields.keys.size()) {
    return absl::InvalidArgumentError(absl::StrCat("external_ids: ", fields.external_ids.size(),
                                                   " for ", fields.keys.size(), " blocks"));
  }
  for (size_t i = 0; i < fields.external_ids.size(); ++i) {
    const size_t bytes = fields.external_ids[i].size();
    if (bytes >= 1 && bytes <= kExternalIdBytesMax) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "external_ids[", i, "] has ", bytes, " bytes: 1 to ", kExternalIdBytesMax, " are allowed"));
  }
  return absl::OkStatus();
}

absl::Status CheckFields(const KeyRules& rules, const ReserveFields& fields) {
  if (absl::Status status = ValidateScope(fields.scope); !status.ok()) return status;
  if (fields.keys.empty() || fields.keys.size() > kBlocksPerReserveMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "keys: 1 to ", kBlocksPerReserveMax, " blocks in a reserve, not ", fields.keys.size()));
  }
  if (absl::Status status = CheckTokens(rules, fields); !status.ok()) return status;
  return rules.key_scheme == KeyScheme::kCairn ? CheckCairn(fields) : CheckExternal(fields);
}

// The first key that is another than the node computes.
std::optional<size_t> FirstMismatch(const BlockHasher& hasher, const KeyRules& rules,
                                    const ReserveFields& fields) {
  const BlockKey root =
      EnterScope(fields.region_parent.value_or(rules.fingerprint.root()), fields.scope);
  BlockKey before = fields.parent.value_or(root);
  for (size_t i = 0; i < fields.keys.size(); ++i) {
    BlockKey key;
    if (rules.key_scheme == KeyScheme::kExternal) {
      key = hasher.External(root, fields.external_ids[i]);
    } else {
      auto extra = fields.extras.find(static_cast<uint32_t>(i));
      const std::string encoded =
          extra == fields.extras.end() ? std::string() : EncodeExtra(extra->second);
      key = hasher.Block(before, fields.tokens.subspan(i * rules.block_tokens, rules.block_tokens),
                         encoded);
    }
    if (key != fields.keys[i]) return i;
    before = key;
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<ReserveQuery> PlanReserve(const BlockHasher& hasher, const KeyRules& rules,
                                         const ReserveFields& fields) {
  if (absl::Status status = CheckFields(rules, fields); !status.ok()) return status;
  ReserveQuery query;
  query.scope_digest = ScopeDigest(fields.scope);
  query.enters_scope = !fields.parent.has_value();
  query.parent = fields.parent.has_value() ? fields.parent : fields.region_parent;
  query.adapter = fields.scope.adapter;
  query.salt = fields.scope.salt;
  query.keys.assign(fields.keys.begin(), fields.keys.end());
  query.tokens.assign(fields.tokens.begin(), fields.tokens.end());
  query.mismatch_at = FirstMismatch(hasher, rules, fields);
  query.ttl = fields.ttl;
  return query;
}

}  // namespace cairn::node
