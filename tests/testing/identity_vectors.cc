#include "tests/testing/identity_vectors.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/hex.h"

namespace cairn::testing {
namespace {

using Json = nlohmann::json;

std::string Text(const Json& json, const char* field) { return json.at(field).get<std::string>(); }

uint32_t U32(const Json& json, const char* field) { return json.at(field).get<uint32_t>(); }

std::string FromHexOrDie(const std::string& hex) {
  absl::StatusOr<std::string> bytes = FromHex(hex);
  CAIRN_CHECK_MSG(bytes.ok(), hex);
  return *std::move(bytes);
}

std::string Raw(const Json& json, const char* field) { return FromHexOrDie(Text(json, field)); }

BlockKey KeyOf(const std::string& hex) {
  const std::optional<BlockKey> key = BlockKey::FromBytes(FromHexOrDie(hex));
  CAIRN_CHECK_MSG(key.has_value(), hex);
  return *key;
}

std::vector<BlockKey> KeysOf(const Json& list) {
  std::vector<BlockKey> keys;
  for (const Json& hex : list) keys.push_back(KeyOf(hex.get<std::string>()));
  return keys;
}

// Digests are written as numbers: the most significant digit first.
uint64_t U64OfHex(const std::string& hex) {
  uint64_t value = 0;
  CAIRN_CHECK_MSG(absl::SimpleHexAtoi(hex, &value), hex);
  return value;
}

Group GroupOf(const Json& json) {
  return {.kind = static_cast<GroupKind>(U32(json, "kind")),
          .required = U32(json, "required"),
          .layers = U32(json, "layers"),
          .kv_heads = U32(json, "kv_heads"),
          .key_dim = U32(json, "key_dim"),
          .value_dim = U32(json, "value_dim"),
          .dtype = static_cast<Dtype>(U32(json, "dtype")),
          .scales = static_cast<ScaleKind>(U32(json, "scales")),
          .window_tokens = U32(json, "window_tokens"),
          .state_stride_blocks = U32(json, "state_stride_blocks"),
          .opaque_bytes = U32(json, "opaque_bytes"),
          .reserved = U32(json, "reserved")};
}

Layout LayoutOf(const Json& json) {
  Layout layout{.version = U32(json, "version"),
                .block_tokens = U32(json, "block_tokens"),
                .slices = U32(json, "slices"),
                .groups = {}};
  for (const Json& group : json.at("groups")) layout.groups.push_back(GroupOf(group));
  return layout;
}

Namespace NamespaceOf(const Json& json) {
  return {.model = Text(json, "model"),
          .revision = Text(json, "revision"),
          .numerics = Raw(json, "numerics_hex"),
          .key_scheme = static_cast<KeyScheme>(U32(json, "key_scheme")),
          .layout = LayoutOf(json.at("layout"))};
}

Scope ScopeOf(const Json& json) {
  return {.tenant = Text(json, "tenant"),
          .adapter = Text(json, "adapter"),
          .salt = Raw(json, "salt_hex")};
}

ExtraItem ExtraItemOf(const Json& json) {
  ExtraItem item{.kind = static_cast<ExtraKind>(U32(json, "kind")),
                 .digest = {},
                 .start = json.at("start").get<int32_t>()};
  const std::string digest = Raw(json, "digest_hex");
  CAIRN_CHECK(digest.size() == item.digest.size());
  std::copy(digest.begin(), digest.end(), item.digest.begin());
  return item;
}

KeyVector KeyVectorOf(const Json& json) {
  KeyVector vector;
  vector.name = Text(json, "name");
  vector.name_space = NamespaceOf(json.at("namespace"));
  for (const Json& region : json.at("regions")) {
    vector.regions.push_back(
        {ScopeOf(region.at("scope")), region.at("tokens").get<std::vector<uint32_t>>()});
  }
  for (const auto& [index, items] : json.at("extras").items()) {
    uint32_t block = 0;
    CAIRN_CHECK(absl::SimpleAtoi(index, &block));
    for (const Json& item : items) vector.extras[block].push_back(ExtraItemOf(item));
  }
  const auto fingerprint = Fingerprint::FromBytes(Raw(json, "fingerprint_hex"));
  CAIRN_CHECK(fingerprint.has_value());
  vector.fingerprint = *fingerprint;
  vector.keys = KeysOf(json.at("keys_hex"));
  return vector;
}

ExternalVectors ExternalVectorsOf(const Json& json) {
  ExternalVectors vectors;
  vectors.name_space = NamespaceOf(json.at("namespace"));
  vectors.root = KeyOf(Text(json, "root_hex"));
  for (const Json& one : json.at("cases")) {
    vectors.cases.push_back({Raw(one, "id_hex"), KeyOf(Text(one, "key_hex"))});
  }
  const Json& second = json.at("second_region");
  for (const Json& id : second.at("first_ids_hex")) {
    vectors.first_region_ids.push_back(FromHexOrDie(id.get<std::string>()));
  }
  vectors.second_scope = ScopeOf(second.at("scope"));
  vectors.second_region = {Raw(second, "id_hex"), KeyOf(Text(second, "key_hex"))};
  return vectors;
}

PayloadVector PayloadVectorOf(const Json& json) {
  PayloadVector vector;
  vector.name = Text(json, "name");
  vector.layout = LayoutOf(json.at("layout"));
  vector.group = U32(json, "group");
  vector.slices = U32(json, "slices");
  vector.segment_bytes = json.at("segment_bytes").get<uint64_t>();
  vector.part_bytes = json.at("part_bytes").get<uint64_t>();
  vector.digest_key = KeyOf(Text(json, "digest_key_hex"));
  vector.digest_slice = U32(json, "digest_slice");
  for (const Json& hex : json.at("sample_segments_hex")) {
    vector.sample_segments.push_back(FromHexOrDie(hex.get<std::string>()));
  }
  for (const Json& hex : json.at("sample_digests_hex")) {
    vector.sample_digests.push_back(U64OfHex(hex.get<std::string>()));
  }
  vector.sample_part_digest = U64OfHex(Text(json, "sample_part_digest_hex"));
  return vector;
}

DigestVector DigestVectorOf(const Json& json) {
  return {.key = KeyOf(Text(json, "key_hex")),
          .id = {U32(json, "group"), U32(json, "slice"), U32(json, "layer")},
          .data = Raw(json, "data_hex"),
          .digest = U64OfHex(Text(json, "digest_hex"))};
}

}  // namespace

std::vector<Region> KeyVector::Prompt() const {
  std::vector<Region> prompt;
  for (const RegionVector& region : regions) {
    prompt.push_back({.scope = region.scope, .tokens = region.tokens, .external_ids = {}});
  }
  return prompt;
}

IdentityVectors IdentityVectors::Load() {
  return LoadFrom(absl::StrCat(CAIRN_SOURCE_DIR, "/tests/vectors/identity.json"));
}

IdentityVectors IdentityVectors::LoadFrom(const std::string& path) {
  std::ifstream file(path);
  CAIRN_CHECK_MSG(file.good(), path);
  const Json json = Json::parse(file);
  CAIRN_CHECK(U32(json, "key_bytes") == kKeyBytes);
  IdentityVectors vectors;
  for (const Json& one : json.at("keys")) vectors.keys.push_back(KeyVectorOf(one));
  vectors.external = ExternalVectorsOf(json.at("external"));
  for (const Json& one : json.at("payloads")) vectors.payloads.push_back(PayloadVectorOf(one));
  for (const Json& one : json.at("digests")) vectors.digests.push_back(DigestVectorOf(one));
  const Json& feed = json.at("feed");
  vectors.feed = {.keys = KeysOf(feed.at("keys_hex")),
                  .count = feed.at("count").get<size_t>(),
                  .sum = U64OfHex(Text(feed, "sum_hex"))};
  return vectors;
}

Scope PublicScope() { return {.tenant = "public", .adapter = "", .salt = ""}; }

}  // namespace cairn::testing
