#include "tests/cluster/engine/engine_model.h"

#include "absl/strings/str_cat.h"
#include "client/cpp/async/layer_steps.h"
#include "common/base/check.h"

namespace cairn::testing {
namespace {

constexpr uint32_t kBlockTokens = 16;

Namespace EngineNamespace() {
  Namespace fields;
  fields.model = "engine-shaped";
  fields.key_scheme = KeyScheme::kExternal;
  fields.layout.version = 1;
  fields.layout.block_tokens = kBlockTokens;
  fields.layout.slices = kEngineRanks;
  Group full;
  full.kind = GroupKind::kFull;
  full.layers = 3;
  full.kv_heads = kEngineRanks;
  full.key_dim = full.value_dim = 32;
  full.dtype = Dtype::kBfloat16;
  Group sliding = full;
  sliding.kind = GroupKind::kSlidingWindow;
  sliding.layers = 2;
  sliding.window_tokens = kEngineWindowBlocks * kBlockTokens;
  fields.layout.groups = {full, sliding};
  return fields;
}

std::vector<std::string> IdsOf(uint32_t number, size_t blocks) {
  std::vector<std::string> ids;
  for (size_t i = 0; i < blocks; ++i) ids.push_back(absl::StrCat("engine-", number, "-", i));
  return ids;
}

Prompt PromptOf(const CacheNodeClient& client, const NamespaceHandle& name_space,
                const std::vector<std::string>& ids) {
  const Region region{.scope = {name_space.tenant(), "", ""}, .tokens = {}, .external_ids = ids};
  absl::StatusOr<Prompt> prompt = client.MakePrompt(name_space, {&region, 1});
  CAIRN_CHECK_OK(prompt.status());
  return *std::move(prompt);
}

std::vector<PartLayers> PartsOf(uint32_t rank) {
  return {{.group = 0, .slice = rank}, {.group = 1, .slice = rank}};
}

}  // namespace

NamespaceHandle RegisterEngine(CacheNodeClient& client) {
  absl::StatusOr<NamespaceHandle> handle =
      client.RegisterNamespace("engine-shaped", EngineNamespace());
  CAIRN_CHECK_OK(handle.status());
  return *std::move(handle);
}

EnginePrompt::EnginePrompt(const CacheNodeClient& client, const NamespaceHandle& name_space,
                           uint32_t number, size_t blocks)
    : ids_(IdsOf(number, blocks)), prompt_(PromptOf(client, name_space, ids_)) {}

std::vector<LayerStep> StoreStepsOf(const NamespaceHandle& name_space, uint32_t rank) {
  return *StepsByLayer(name_space.payload_map(), PartsOf(rank), 1);
}

std::vector<LayerStep> LoadStepsOf(const NamespaceHandle& name_space, uint32_t rank) {
  return *LoadStepsByLayer(name_space.payload_map(), PartsOf(rank), 1);
}

}  // namespace cairn::testing
