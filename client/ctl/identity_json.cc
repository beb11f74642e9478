#include "client/ctl/identity_json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace cairn::ctl {
namespace {

// Reads u32 fields one after the other; the first failure stays.
class U32Fields {
 public:
  explicit U32Fields(const JsonReader& json) : json_(json) {}

  uint32_t Take(absl::string_view field) { return Keep(json_.U32Field(field)); }
  uint32_t TakeOrZero(absl::string_view field) { return Keep(json_.U32FieldOr(field, 0)); }
  const absl::Status& status() const { return status_; }

 private:
  uint32_t Keep(const absl::StatusOr<uint32_t>& value) {
    if (value.ok()) return *value;
    if (status_.ok()) status_ = value.status();
    return 0;
  }

  const JsonReader& json_;
  absl::Status status_;
};

absl::StatusOr<Group> GroupFromJson(const JsonReader& json) {
  absl::Status status = json.CheckObject({"kind", "required", "layers", "kv_heads", "key_dim",
                                          "value_dim", "dtype", "scales", "window_tokens",
                                          "state_stride_blocks", "opaque_bytes", "reserved"});
  if (!status.ok()) return status;
  U32Fields fields(json);
  Group group;
  group.kind = static_cast<GroupKind>(fields.Take("kind"));
  group.required = fields.Take("required");
  group.layers = fields.Take("layers");
  group.kv_heads = fields.Take("kv_heads");
  group.key_dim = fields.Take("key_dim");
  group.value_dim = fields.Take("value_dim");
  group.dtype = static_cast<Dtype>(fields.Take("dtype"));
  group.scales = static_cast<ScaleKind>(fields.TakeOrZero("scales"));
  group.window_tokens = fields.TakeOrZero("window_tokens");
  group.state_stride_blocks = fields.TakeOrZero("state_stride_blocks");
  group.opaque_bytes = fields.TakeOrZero("opaque_bytes");
  group.reserved = fields.TakeOrZero("reserved");
  if (!fields.status().ok()) return fields.status();
  return group;
}

absl::StatusOr<Layout> LayoutFromJson(const JsonReader& json) {
  absl::Status status = json.CheckObject({"version", "block_tokens", "slices", "groups"});
  if (!status.ok()) return status;
  U32Fields fields(json);
  Layout layout;
  layout.version = fields.Take("version");
  layout.block_tokens = fields.Take("block_tokens");
  layout.slices = fields.Take("slices");
  if (!fields.status().ok()) return fields.status();
  const absl::StatusOr<JsonReader> list = json.Field("groups");
  if (!list.ok()) return list.status();
  const absl::StatusOr<std::vector<JsonReader>> groups = list->Elements();
  if (!groups.ok()) return groups.status();
  for (const JsonReader& one : *groups) {
    const absl::StatusOr<Group> group = GroupFromJson(one);
    if (!group.ok()) return group.status();
    layout.groups.push_back(*group);
  }
  return layout;
}

absl::StatusOr<Scope> ScopeFromJson(const JsonReader& json) {
  absl::Status status = json.CheckObject({"tenant", "adapter", "salt_hex"});
  if (!status.ok()) return status;
  absl::StatusOr<std::string> tenant = json.TextField("tenant");
  if (!tenant.ok()) return tenant.status();
  absl::StatusOr<std::string> adapter =
      json.Has("adapter") ? json.TextField("adapter") : std::string();
  if (!adapter.ok()) return adapter.status();
  absl::StatusOr<std::string> salt = json.HexFieldOr("salt_hex", "");
  if (!salt.ok()) return salt.status();
  return Scope{*std::move(tenant), *std::move(adapter), *std::move(salt)};
}

absl::StatusOr<PromptInput::OwnedRegion> RegionFromJson(const JsonReader& json) {
  absl::Status status = json.CheckObject({"scope", "tokens", "external_ids_hex"});
  if (!status.ok()) return status;
  PromptInput::OwnedRegion region;
  const absl::StatusOr<JsonReader> scope = json.Field("scope");
  if (!scope.ok()) return scope.status();
  absl::StatusOr<Scope> read = ScopeFromJson(*scope);
  if (!read.ok()) return read.status();
  region.scope = *std::move(read);
  if (json.Has("external_ids_hex")) {
    const auto ids = json.Field("external_ids_hex")->Elements();
    if (!ids.ok()) return ids.status();
    for (const JsonReader& one : *ids) {
      absl::StatusOr<std::string> id = one.Hex();
      if (!id.ok()) return id.status();
      region.external_ids.push_back(*std::move(id));
    }
    if (!json.Has("tokens")) return region;
  }
  const absl::StatusOr<JsonReader> list = json.Field("tokens");
  if (!list.ok()) return list.status();
  const absl::StatusOr<std::vector<JsonReader>> tokens = list->Elements();
  if (!tokens.ok()) return tokens.status();
  for (const JsonReader& one : *tokens) {
    const absl::StatusOr<uint32_t> token = one.U32();
    if (!token.ok()) return token.status();
    region.tokens.push_back(*token);
  }
  return region;
}

absl::StatusOr<ExtraItem> ExtraFromJson(const JsonReader& json) {
  absl::Status status = json.CheckObject({"kind", "digest_hex", "start"});
  if (!status.ok()) return status;
  const absl::StatusOr<uint32_t> kind = json.U32Field("kind");
  if (!kind.ok()) return kind.status();
  if (*kind != 1 && *kind != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(json.path(), ".kind: ", *kind, "; must be 1 (media) or 2 (embedding)"));
  }
  const absl::StatusOr<JsonReader> digest = json.Field("digest_hex");
  if (!digest.ok()) return digest.status();
  const absl::StatusOr<std::string> bytes = digest->Hex();
  if (!bytes.ok()) return bytes.status();
  ExtraItem item;
  if (bytes->size() != item.digest.size()) {
    return digest->Wrong(absl::StrCat("must be 32 bytes, not ", bytes->size()));
  }
  const absl::StatusOr<JsonReader> start = json.Field("start");
  if (!start.ok()) return start.status();
  const absl::StatusOr<int32_t> at = start->I32();
  if (!at.ok()) return at.status();
  item.kind = static_cast<ExtraKind>(*kind);
  std::copy(bytes->begin(), bytes->end(), item.digest.begin());
  item.start = *at;
  return item;
}

absl::StatusOr<ExtrasByBlock> ExtrasFromJson(const JsonReader& json) {
  if (!json.value().is_object()) {
    return json.Wrong("must be an object of block index to list of items");
  }
  ExtrasByBlock extras;
  for (const auto& [index, list] : json.value().items()) {
    const JsonReader items(&list, absl::StrCat(json.path(), ".", index));
    uint32_t block = 0;
    if (!absl::SimpleAtoi(index, &block)) return items.Wrong("its name must be a block's index");
    const absl::StatusOr<std::vector<JsonReader>> elements = items.Elements();
    if (!elements.ok()) return elements.status();
    for (const JsonReader& one : *elements) {
      const absl::StatusOr<ExtraItem> item = ExtraFromJson(one);
      if (!item.ok()) return item.status();
      extras[block].push_back(*item);
    }
  }
  return extras;
}

}  // namespace

absl::StatusOr<Namespace> NamespaceFromJson(const JsonReader& json) {
  absl::Status status =
      json.CheckObject({"model", "revision", "numerics_hex", "key_scheme", "layout"});
  if (!status.ok()) return status;
  absl::StatusOr<std::string> model = json.TextField("model");
  if (!model.ok()) return model.status();
  absl::StatusOr<std::string> revision = json.TextField("revision");
  if (!revision.ok()) return revision.status();
  absl::StatusOr<std::string> numerics = json.HexFieldOr("numerics_hex", "");
  if (!numerics.ok()) return numerics.status();
  const absl::StatusOr<uint32_t> key_scheme = json.U32Field("key_scheme");
  if (!key_scheme.ok()) return key_scheme.status();
  const absl::StatusOr<JsonReader> shape = json.Field("layout");
  if (!shape.ok()) return shape.status();
  absl::StatusOr<Layout> layout = LayoutFromJson(*shape);
  if (!layout.ok()) return layout.status();
  return Namespace{.model = *std::move(model),
                   .revision = *std::move(revision),
                   .numerics = *std::move(numerics),
                   .key_scheme = static_cast<KeyScheme>(*key_scheme),
                   .layout = *std::move(layout)};
}

std::vector<Region> PromptInput::Regions() const {
  std::vector<Region> views;
  for (const OwnedRegion& region : regions) {
    views.push_back(
        {.scope = region.scope, .tokens = region.tokens, .external_ids = region.external_ids});
  }
  return views;
}

absl::StatusOr<PromptInput> PromptFromJson(const JsonReader& json) {
  PromptInput prompt;
  const absl::StatusOr<JsonReader> list = json.Field("regions");
  if (!list.ok()) return list.status();
  const absl::StatusOr<std::vector<JsonReader>> regions = list->Elements();
  if (!regions.ok()) return regions.status();
  for (const JsonReader& one : *regions) {
    absl::StatusOr<PromptInput::OwnedRegion> region = RegionFromJson(one);
    if (!region.ok()) return region.status();
    prompt.regions.push_back(*std::move(region));
  }
  if (!json.Has("extras")) return prompt;
  absl::StatusOr<ExtrasByBlock> extras = ExtrasFromJson(*json.Field("extras"));
  if (!extras.ok()) return extras.status();
  prompt.extras = *std::move(extras);
  return prompt;
}

}  // namespace cairn::ctl
