#include "tests/sim/worker/prompt_book.h"

#include <utility>

#include "cache_node/store/scope_digest.h"
#include "common/base/check.h"

namespace cairn::sim {
namespace {

constexpr uint32_t kBlockTokens = 16;

NamespaceHandle MakeHandle(const std::string& model, uint32_t slices, std::vector<Group> groups) {
  const Namespace fields{.model = model,
                         .revision = "1",
                         .numerics = "",
                         .key_scheme = KeyScheme::kCairn,
                         .layout = {.version = kLayoutVersion,
                                    .block_tokens = kBlockTokens,
                                    .slices = slices,
                                    .groups = std::move(groups)}};
  absl::StatusOr<NamespaceHandle> handle = NamespaceHandle::Make(model, fields);
  CAIRN_CHECK_OK(handle.status());
  return *std::move(handle);
}

}  // namespace

PromptBook::PromptBook() {
  const Group whole{.kind = GroupKind::kFull,
                    .required = 1,
                    .layers = 1,
                    .kv_heads = 1,
                    .key_dim = 16,
                    .value_dim = 16,
                    .dtype = Dtype::kBfloat16};
  const Group cut{.kind = GroupKind::kFull,
                  .required = 1,
                  .layers = 2,
                  .kv_heads = 2,
                  .key_dim = 8,
                  .value_dim = 8,
                  .dtype = Dtype::kBfloat16};
  const Group draft{.kind = GroupKind::kDraft,
                    .required = 0,
                    .layers = 1,
                    .kv_heads = 2,
                    .dtype = Dtype::kOpaque,
                    .opaque_bytes = 4};
  namespaces_.push_back(MakeHandle("whole", 1, {whole}));
  namespaces_.push_back(MakeHandle("cut", 2, {cut, draft}));
}

const NamespaceHandle* PromptBook::FindNamespace(const Fingerprint& fingerprint) const {
  for (const NamespaceHandle& name_space : namespaces_) {
    if (name_space.fingerprint() == fingerprint) return &name_space;
  }
  return nullptr;
}

const SimPrompt* PromptBook::Add(size_t name_space, std::vector<SimRegion> regions) {
  const SimPrompt& added =
      prompts_.emplace_back(hasher_, &namespaces_[name_space], std::move(regions));
  for (size_t region = 0; region < added.regions().size(); ++region) {
    const Scope& scope = added.regions()[region].scope;
    const KeyFacts facts{&added.name_space(), scope, node::ScopeDigest(scope)};
    for (size_t block = added.prompt().FirstBlock(region);
         block < added.prompt().FirstBlock(region + 1); ++block) {
      keys_.emplace(added.prompt().keys()[block], facts);
    }
  }
  return &added;
}

const KeyFacts* PromptBook::Find(const BlockKey& key) const {
  const auto found = keys_.find(key);
  return found == keys_.end() ? nullptr : &found->second;
}

}  // namespace cairn::sim
