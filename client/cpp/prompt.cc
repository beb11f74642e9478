#include "client/cpp/prompt.h"

#include <utility>

#include "common/base/check.h"

namespace cairn {

absl::StatusOr<Prompt> Prompt::Make(const BlockHasher& hasher, const NamespaceHandle& name_space,
                                    absl::Span<const Region> regions, const ExtrasByBlock& extras) {
  const KeyRules& rules = name_space.key_rules();
  Prompt prompt;
  prompt.regions_.assign(regions.begin(), regions.end());
  for (Region& region : prompt.regions_) {
    // As the node resolves it: its keys would not be these otherwise.
    if (region.scope.tenant.empty()) region.scope.tenant = name_space.tenant();
  }
  absl::StatusOr<std::vector<BlockKey>> keys = PromptKeys(hasher, rules, prompt.regions_, extras);
  if (!keys.ok()) return keys.status();
  prompt.extras_ = extras;
  prompt.keys_ = *std::move(keys);
  size_t block = 0;
  for (const Region& region : regions) {
    prompt.first_blocks_.push_back(block);
    block += rules.key_scheme == KeyScheme::kExternal ? region.external_ids.size()
                                                      : region.tokens.size() / rules.block_tokens;
  }
  CAIRN_CHECK(block == prompt.keys_.size());
  return prompt;
}

Prompt Prompt::FromKeys(std::vector<BlockKey> keys) {
  Prompt prompt;
  prompt.keys_ = std::move(keys);
  return prompt;
}

size_t Prompt::token_count() const {
  size_t tokens = 0;
  for (const Region& region : regions_) tokens += region.tokens.size();
  return tokens;
}

size_t Prompt::FirstBlock(size_t region) const {
  CAIRN_CHECK(region <= regions_.size());
  return region < regions_.size() ? first_blocks_[region] : keys_.size();
}

}  // namespace cairn
