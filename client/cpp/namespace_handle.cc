#include "client/cpp/namespace_handle.h"

#include <utility>

namespace cairn {

NamespaceHandle::NamespaceHandle(std::string name, const Namespace& fields, const KeyRules& rules,
                                 PayloadMap payload_map)
    : name_(std::move(name)),
      fields_(fields),
      rules_(rules),
      payload_map_(std::move(payload_map)) {}

absl::StatusOr<NamespaceHandle> NamespaceHandle::Make(std::string name, const Namespace& fields) {
  absl::StatusOr<KeyRules> rules = KeyRulesOf(fields);
  if (!rules.ok()) return rules.status();
  absl::StatusOr<PayloadMap> payload_map = PayloadMap::Make(fields.layout);
  if (!payload_map.ok()) return payload_map.status();
  return NamespaceHandle(std::move(name), fields, *rules, *std::move(payload_map));
}

}  // namespace cairn
