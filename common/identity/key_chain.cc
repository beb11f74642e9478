#include "common/identity/key_chain.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn {
namespace {

absl::Status Bad(absl::string_view what, uint64_t value, absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat(what, " is ", value, "; allowed: ", allowed));
}

// Full blocks of one region, having checked that tokens and ids fit the scheme and each other.
absl::StatusOr<size_t> RegionBlocks(const KeyRules& rules, const Region& region) {
  const size_t token_blocks = region.tokens.size() / rules.block_tokens;
  if (rules.key_scheme == KeyScheme::kCairn) {
    if (region.external_ids.empty()) return token_blocks;
    return Bad("number of external ids", region.external_ids.size(), "0 under key scheme 1");
  }
  if (!region.tokens.empty() && token_blocks != region.external_ids.size()) {
    return Bad("number of external ids", region.external_ids.size(),
               absl::StrCat("one for each full block of the region's tokens, ", token_blocks));
  }
  return region.external_ids.size();
}

struct PromptSize {
  size_t tokens = 0;
  size_t blocks = 0;
};

// The prompt's size, having checked what can be said before any key is made.
absl::StatusOr<PromptSize> CheckRegions(const KeyRules& rules, absl::Span<const Region> regions) {
  if (regions.empty() || regions.size() > kRegionsMax) {
    return Bad("number of regions", regions.size(), absl::StrCat("1 to ", kRegionsMax));
  }
  PromptSize size;
  for (const Region& region : regions) {
    absl::StatusOr<size_t> blocks = RegionBlocks(rules, region);
    if (!blocks.ok()) return blocks.status();
    size.tokens += region.tokens.size();
    size.blocks += *blocks;
    if (size.tokens > kPromptTokensMax) {
      return Bad("number of tokens", size.tokens, absl::StrCat("up to ", kPromptTokensMax));
    }
    if (size.blocks > kPromptBlocksMax) {
      return Bad("number of blocks", size.blocks, absl::StrCat("up to ", kPromptBlocksMax));
    }
  }
  if (regions.size() == kRegionsMax && regions[0].tokens.size() % rules.block_tokens != 0) {
    return Bad("number of tokens of the first of two regions", regions[0].tokens.size(),
               absl::StrCat("multiples of block_tokens, ", rules.block_tokens));
  }
  return size;
}

absl::Status CheckExtras(const KeyRules& rules, const PromptSize& size,
                         absl::Span<const Region> regions, const ExtrasByBlock& extras) {
  if (extras.empty()) return absl::OkStatus();
  if (rules.key_scheme != KeyScheme::kCairn) {
    return Bad("number of blocks with extra", extras.size(), "0 under key scheme 2");
  }
  const bool has_tail = regions.back().tokens.size() % rules.block_tokens != 0;
  const size_t blocks = size.blocks + (has_tail ? 1 : 0);
  if (extras.rbegin()->first >= blocks) {
    return Bad("block of an extra", extras.rbegin()->first,
               absl::StrCat("under the prompt's number of blocks, ", blocks));
  }
  for (const auto& [block, items] : extras) {
    absl::Status status = ValidateExtra(items);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<KeyRules> KeyRulesOf(const Namespace& name_space) {
  absl::StatusOr<Fingerprint> fingerprint = FingerprintOf(name_space);
  if (!fingerprint.ok()) return fingerprint.status();
  return KeyRules{*fingerprint, name_space.key_scheme, name_space.layout.block_tokens};
}

KeyChain::KeyChain(const BlockHasher* hasher, const KeyRules& rules)
    : hasher_(hasher), rules_(rules), root_(rules.fingerprint.root()), parent_(root_) {
  CAIRN_CHECK(hasher != nullptr);
  CAIRN_CHECK(rules.block_tokens > 0);
}

absl::Status KeyChain::Enter(const Scope& scope) {
  if (region_count_ == kRegionsMax) {
    return Bad("number of regions", region_count_ + 1, absl::StrCat("1 to ", kRegionsMax));
  }
  if (region_count_ == 1 && block_count_ == 0) {
    return Bad("number of blocks in the first of two regions", 0, "at least 1");
  }
  absl::Status status = ValidateScope(scope);
  if (!status.ok()) return status;
  root_ = EnterScope(parent_, scope);
  parent_ = root_;
  ++region_count_;
  return absl::OkStatus();
}

absl::Status KeyChain::CheckCanAppend(KeyScheme scheme) const {
  if (rules_.key_scheme != scheme) {
    return Bad("key scheme of the block", static_cast<uint32_t>(scheme),
               absl::StrCat("the namespace's, ", static_cast<uint32_t>(rules_.key_scheme)));
  }
  if (region_count_ == 0) return Bad("number of regions", 0, "at least 1 before a block");
  if (block_count_ == kPromptBlocksMax) {
    return Bad("number of blocks", block_count_ + 1, absl::StrCat("up to ", kPromptBlocksMax));
  }
  return absl::OkStatus();
}

absl::StatusOr<BlockKey> KeyChain::Next(absl::Span<const uint32_t> tokens,
                                        absl::string_view extra) {
  absl::Status status = CheckCanAppend(KeyScheme::kCairn);
  if (!status.ok()) return status;
  if (tokens.size() != rules_.block_tokens) {
    return Bad("number of tokens of a block", tokens.size(),
               absl::StrCat("block_tokens, ", rules_.block_tokens));
  }
  if (!extra.empty()) {
    if (status = ValidateEncodedExtra(extra); !status.ok()) return status;
  }
  parent_ = hasher_->Block(parent_, tokens, extra);
  ++block_count_;
  return parent_;
}

absl::StatusOr<BlockKey> KeyChain::NextExternal(absl::string_view id) {
  absl::Status status = CheckCanAppend(KeyScheme::kExternal);
  if (!status.ok()) return status;
  if (id.empty() || id.size() > kExternalIdBytesMax) {
    return Bad("bytes of an external id", id.size(), absl::StrCat("1 to ", kExternalIdBytesMax));
  }
  parent_ = hasher_->External(root_, id);
  ++block_count_;
  return parent_;
}

absl::StatusOr<std::vector<BlockKey>> PromptKeys(const BlockHasher& hasher, const KeyRules& rules,
                                                 absl::Span<const Region> regions,
                                                 const ExtrasByBlock& extras) {
  absl::StatusOr<PromptSize> size = CheckRegions(rules, regions);
  if (!size.ok()) return size.status();
  absl::Status status = CheckExtras(rules, *size, regions, extras);
  if (!status.ok()) return status;

  KeyChain chain(&hasher, rules);
  std::vector<BlockKey> keys;
  keys.reserve(size->blocks);
  auto extra = extras.begin();
  for (const Region& region : regions) {
    if (status = chain.Enter(region.scope); !status.ok()) return status;
    const size_t blocks = *RegionBlocks(rules, region);
    for (size_t i = 0; i < blocks; ++i) {
      std::string encoded;
      if (extra != extras.end() && extra->first == keys.size()) {
        encoded = EncodeExtra(extra->second);
        ++extra;
      }
      absl::StatusOr<BlockKey> key =
          rules.key_scheme == KeyScheme::kCairn
              ? chain.Next(region.tokens.subspan(i * rules.block_tokens, rules.block_tokens),
                           encoded)
              : chain.NextExternal(region.external_ids[i]);
      if (!key.ok()) return key.status();
      keys.push_back(*key);
    }
  }
  CAIRN_CHECK(keys.size() == size->blocks);
  return keys;
}

}  // namespace cairn
