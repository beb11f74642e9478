#include "cache_node/store/namespace_difference.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "cache_node/store/namespace_table.h"
#include "common/base/check.h"
#include "common/base/hex.h"

namespace cairn::node {
namespace {

std::string Differ(absl::string_view field, absl::string_view there, absl::string_view here) {
  return absl::StrCat(field, " is ", there, " there and ", here, " here");
}

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", absl::Utf8SafeCHexEscape(text), "\"");
}

struct GroupField {
  const char* name;
  uint32_t (*value)(const Group& group);
};

constexpr GroupField kGroupFields[] = {
    {"kind", [](const Group& g) { return static_cast<uint32_t>(g.kind); }},
    {"required", [](const Group& g) { return g.required; }},
    {"layers", [](const Group& g) { return g.layers; }},
    {"kv_heads", [](const Group& g) { return g.kv_heads; }},
    {"key_dim", [](const Group& g) { return g.key_dim; }},
    {"value_dim", [](const Group& g) { return g.value_dim; }},
    {"dtype", [](const Group& g) { return static_cast<uint32_t>(g.dtype); }},
    {"scales", [](const Group& g) { return static_cast<uint32_t>(g.scales); }},
    {"window_tokens", [](const Group& g) { return g.window_tokens; }},
    {"state_stride_blocks", [](const Group& g) { return g.state_stride_blocks; }},
    {"opaque_bytes", [](const Group& g) { return g.opaque_bytes; }},
    {"reserved", [](const Group& g) { return g.reserved; }},
};

std::string DescribeLayoutDifference(const Layout& there, const Layout& here) {
  if (there.version != here.version) {
    return Differ("layout.version", absl::StrCat(there.version), absl::StrCat(here.version));
  }
  if (there.block_tokens != here.block_tokens) {
    return Differ("layout.block_tokens", absl::StrCat(there.block_tokens),
                  absl::StrCat(here.block_tokens));
  }
  if (there.slices != here.slices) {
    return Differ("layout.slices", absl::StrCat(there.slices), absl::StrCat(here.slices));
  }
  if (there.groups.size() != here.groups.size()) {
    return Differ("the number of layout.groups", absl::StrCat(there.groups.size()),
                  absl::StrCat(here.groups.size()));
  }
  for (size_t i = 0; i < here.groups.size(); ++i) {
    for (const GroupField& field : kGroupFields) {
      const uint32_t there_value = field.value(there.groups[i]);
      const uint32_t here_value = field.value(here.groups[i]);
      if (there_value == here_value) continue;
      return Differ(absl::StrCat("layout.groups[", i, "].", field.name), absl::StrCat(there_value),
                    absl::StrCat(here_value));
    }
  }
  return "no field";
}

// Fields that are equal; of layouts, those of their groups too.
int CommonFields(const Namespace& a, const Namespace& b) {
  int common = a.model == b.model;
  common += a.revision == b.revision;
  common += a.numerics == b.numerics;
  common += a.key_scheme == b.key_scheme;
  common += a.layout.block_tokens == b.layout.block_tokens;
  common += a.layout.slices == b.layout.slices;
  for (size_t i = 0; i < std::min(a.layout.groups.size(), b.layout.groups.size()); ++i) {
    for (const GroupField& field : kGroupFields) {
      common += field.value(a.layout.groups[i]) == field.value(b.layout.groups[i]);
    }
  }
  return common;
}

}  // namespace

std::string DescribeDifference(const Namespace& there, const Namespace& here) {
  CAIRN_CHECK(!(there == here));
  if (there.model != here.model) return Differ("model", Quoted(there.model), Quoted(here.model));
  if (there.revision != here.revision) {
    return Differ("revision", Quoted(there.revision), Quoted(here.revision));
  }
  if (there.numerics != here.numerics) {
    return Differ("numerics", absl::StrCat("0x", ToHex(there.numerics)),
                  absl::StrCat("0x", ToHex(here.numerics)));
  }
  if (there.key_scheme != here.key_scheme) {
    return Differ("key_scheme", absl::StrCat(static_cast<uint32_t>(there.key_scheme)),
                  absl::StrCat(static_cast<uint32_t>(here.key_scheme)));
  }
  return DescribeLayoutDifference(there.layout, here.layout);
}

std::vector<std::pair<std::string, std::string>> NearestNamespaces(
    const std::vector<std::pair<std::string, const NamespaceRecord*>>& known,
    const Namespace& fields, size_t max) {
  std::vector<std::pair<int, size_t>> order;  // Most in common first.
  for (size_t i = 0; i < known.size(); ++i) {
    if (!(known[i].second->fields == fields)) {
      order.emplace_back(-CommonFields(known[i].second->fields, fields), i);
    }
  }
  std::sort(order.begin(), order.end());
  if (order.size() > max) order.resize(max);
  std::vector<std::pair<std::string, std::string>> nearest;
  for (const auto& [common, index] : order) {
    nearest.emplace_back(known[index].first,
                         DescribeDifference(known[index].second->fields, fields));
  }
  return nearest;
}

}  // namespace cairn::node
