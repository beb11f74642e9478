#include "tests/bench/spill_parts.h"

#include <fstream>
#include <random>

#include "absl/strings/str_cat.h"
#include "cache_node/store/block_store.h"
#include "cache_node/store/scope_digest.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/identity/segment_digest.h"

namespace cairn::bench {

Namespace SpillNamespace(uint32_t layers, uint32_t heads, uint32_t dim) {
  const Group group = {.kind = GroupKind::kFull,
                       .required = 1,
                       .layers = layers,
                       .kv_heads = heads,
                       .key_dim = dim,
                       .value_dim = dim,
                       .dtype = Dtype::kBfloat16};
  return {
      .model = "spill",
      .revision = "sha256:00",
      .numerics = "",
      .key_scheme = KeyScheme::kCairn,
      .layout = {.version = kLayoutVersion, .block_tokens = 16, .slices = 1, .groups = {group}}};
}

BlockKey SpillKey(uint64_t number) {
  std::mt19937_64 random(number);
  BlockKey key;
  for (uint8_t& byte : key.bytes) byte = static_cast<uint8_t>(random());
  return key;
}

node::DiskScope PublicScope(const Namespace& name_space) {
  const absl::StatusOr<Fingerprint> fingerprint = FingerprintOf(name_space);
  CAIRN_CHECK(fingerprint.ok());
  node::DiskScope scope;
  scope.fingerprint = *fingerprint;
  scope.tenant = node::kPublicTenant;
  scope.scope_digest = node::ScopeDigest({.tenant = scope.tenant, .adapter = "", .salt = ""});
  return scope;
}

std::vector<uint64_t> DigestsOf(const PayloadMap& map, const BlockKey& key,
                                absl::Span<const uint8_t> payload) {
  std::vector<uint64_t> digests;
  for (const PayloadMap::Part& part : map.parts()) {
    for (uint32_t layer = 0; layer < part.layers; ++layer) {
      digests.push_back(SegmentDigest(
          key, {part.group, part.slice, layer},
          payload.subspan(part.offset + layer * part.segment_bytes, part.segment_bytes)));
    }
  }
  return digests;
}

double SecondsSince(absl::Time began) {
  return absl::ToDoubleSeconds(SystemClock().SteadyNow() - began);
}

uint64_t OfProcess(absl::string_view name, absl::string_view field) {
  std::ifstream file(absl::StrCat("/proc/self/", name));
  std::string word;
  uint64_t value = 0;
  while (file >> word) {
    if (word == field && file >> value) return value;
  }
  return 0;
}

}  // namespace cairn::bench
