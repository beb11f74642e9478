#include "tests/cluster/numbered_prompt.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn::testing {
namespace {

constexpr uint32_t kBlockTokens = 16;

std::vector<uint32_t> TokensOf(uint32_t number, size_t count) {
  std::vector<uint32_t> tokens(count);
  for (size_t i = 0; i < count; ++i) tokens[i] = i == 0 ? number : static_cast<uint32_t>(i);
  return tokens;
}

Layout OpaqueBlocks(uint32_t layers, uint32_t opaque_bytes) {
  const Group group = {.kind = GroupKind::kFull,
                       .required = 1,
                       .layers = layers,
                       .dtype = Dtype::kOpaque,
                       .opaque_bytes = opaque_bytes};
  return {.version = kLayoutVersion, .block_tokens = kBlockTokens, .slices = 1, .groups = {group}};
}

Prompt MakePrompt(const CacheNodeClient& client, const NamespaceHandle& name_space,
                  absl::Span<const uint32_t> tokens, const std::string& salt) {
  const Region region = {.scope = ScopeOf(salt), .tokens = tokens, .external_ids = {}};
  absl::StatusOr<Prompt> prompt = client.MakePrompt(name_space, {&region, 1});
  CAIRN_CHECK_OK(prompt.status());
  return *std::move(prompt);
}

}  // namespace

Layout SmallBlocks() {
  const Group group = {.kind = GroupKind::kFull,
                       .required = 1,
                       .layers = 2,
                       .kv_heads = 8,
                       .key_dim = 64,
                       .value_dim = 64,
                       .dtype = Dtype::kBfloat16};
  return {.version = kLayoutVersion, .block_tokens = kBlockTokens, .slices = 4, .groups = {group}};
}

Layout TinyBlocks() { return OpaqueBlocks(1, 4); }

Layout LargeBlocks() { return OpaqueBlocks(8, 64 << 10); }

Namespace NamespaceOf(const Layout& layout) {
  return {.model = "cluster-test",
          .revision = "sha256:00",
          .numerics = "",
          .key_scheme = KeyScheme::kCairn,
          .layout = layout};
}

NamespaceHandle Register(CacheNodeClient& client, const Layout& layout) {
  const Namespace fields = NamespaceOf(layout);
  const absl::StatusOr<Fingerprint> fingerprint = FingerprintOf(fields);
  CAIRN_CHECK_OK(fingerprint.status());
  const std::string name = absl::StrCat("test-", fingerprint->bytes[0], "-", fingerprint->bytes[1]);
  absl::StatusOr<NamespaceHandle> handle = client.RegisterNamespace(name, fields);
  CAIRN_CHECK_OK(handle.status());
  return *std::move(handle);
}

NumberedPrompt::NumberedPrompt(const CacheNodeClient& client, const NamespaceHandle& name_space,
                               uint32_t number, size_t blocks, const std::string& salt)
    : tokens_(TokensOf(number, blocks * name_space.block_tokens())),
      prompt_(MakePrompt(client, name_space, tokens_, salt)) {}

// Keys bind to the tenant, so it is said here, though the node would take it from the caller.
Scope ScopeOf(const std::string& salt) { return {.tenant = "public", .adapter = "", .salt = salt}; }

}  // namespace cairn::testing
