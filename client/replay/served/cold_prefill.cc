#include "client/replay/served/cold_prefill.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn::replay {
namespace {

constexpr uint64_t kSequence = 1;
constexpr uint64_t kChunkTokens = 256;

}  // namespace

absl::StatusOr<NamespaceHandle> ModelNamespace(const ModelShape& shape, uint64_t seed,
                                               const Layout& layout) {
  Namespace fields;
  fields.model = absl::StrCat("seeded/", shape.layers, "x", shape.hidden);
  fields.revision =
      absl::StrCat("seed:", seed, "/", shape.vocabulary, "/", shape.query_heads, "/", shape.ffn);
  fields.key_scheme = KeyScheme::kCairn;
  fields.layout = layout;
  return NamespaceHandle::Make(absl::StrCat(fields.model, "@", seed), fields);
}

absl::StatusOr<std::unique_ptr<ColdPrefill>> ColdPrefill::Run(const Transformer* model,
                                                              const NamespaceHandle& name_space,
                                                              absl::Span<const uint32_t> tokens) {
  const Layout& layout = name_space.fields().layout;
  const Group& group = layout.groups[0];
  const HeadShape heads = model->heads();
  if (layout.groups.size() != 1 || group.layers != model->shape().layers ||
      group.kv_heads != heads.kv_heads || group.key_dim != heads.head_dim ||
      group.value_dim != heads.head_dim || group.kind != GroupKind::kFull) {
    return absl::InvalidArgumentError("the namespace's layout is not the model's");
  }
  std::unique_ptr<ColdPrefill> cold(new ColdPrefill(model, name_space, tokens.size()));
  std::vector<LayerAttention*> slices;
  for (uint32_t slice = 0; slice < layout.slices; ++slice) {
    LocalAttentionOptions options;
    options.shape = PageShape(layout);
    options.layers = model->shape().layers;
    options.query_heads = heads.query_heads / layout.slices;
    options.softmax_scale = model->softmax_scale();
    absl::StatusOr<std::unique_ptr<LocalAttention>> local = LocalAttention::Make(options);
    if (!local.ok()) return local.status();
    if (absl::Status status = (*local)->Open(kSequence); !status.ok()) return status;
    cold->slices_.push_back(*std::move(local));
    slices.push_back(cold->slices_.back().get());
  }
  cold->attention_ = std::make_unique<SlicedAttention>(heads, std::move(slices));
  absl::StatusOr<std::vector<float>> logits =
      Prefill(*model, kSequence, 0, tokens, kChunkTokens, cold->attention_.get());
  if (!logits.ok()) return logits.status();
  cold->logits_ = *std::move(logits);
  return cold;
}

uint64_t ColdPrefill::full_blocks() const { return tokens_ / name_space_.block_tokens(); }

absl::Span<const uint8_t> ColdPrefill::Segment(size_t block, const SegmentId& id) const {
  CAIRN_CHECK(id.group == 0 && id.slice < slices_.size());
  const absl::StatusOr<absl::Span<const std::byte>> bytes =
      slices_[id.slice]->Segment(kSequence, block, id.layer);
  CAIRN_CHECK_OK(bytes.status());
  return {reinterpret_cast<const uint8_t*>(bytes->data()), bytes->size()};
}

absl::StatusOr<PutResult> ColdPrefill::Put(CacheNodeClient* node, const Prompt& prompt) const {
  CAIRN_CHECK(prompt.block_count() <= full_blocks());
  return node->Put(name_space_, prompt,
                   [this](size_t block, const SegmentId& id) { return Segment(block, id); }, {});
}

absl::StatusOr<Decoded> ColdPrefill::Decode(uint64_t steps) {
  return DecodeGreedy(*model_, kSequence, tokens_, logits_, steps, attention_.get());
}

}  // namespace cairn::replay
