// NamespaceHandle: a namespace with all that follows from it, computed once.
//
// A value; copy it freely. It says nothing about whether a node knows the namespace.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/identity/fingerprint.h"
#include "common/identity/key_chain.h"
#include "common/identity/namespace.h"
#include "common/identity/payload_map.h"

namespace cairn {

class NamespaceHandle {
 public:
  // `name` is the label under which the namespace is registered. As ValidateNamespace when the
  // fields mean nothing.
  static absl::StatusOr<NamespaceHandle> Make(std::string name, const Namespace& fields);

  const std::string& name() const { return name_; }
  const Namespace& fields() const { return fields_; }
  const Fingerprint& fingerprint() const { return rules_.fingerprint; }
  const KeyRules& key_rules() const { return rules_; }
  const PayloadMap& payload_map() const { return payload_map_; }
  uint32_t block_tokens() const { return rules_.block_tokens; }
  uint64_t block_bytes() const { return payload_map_.block_bytes(); }

  // What an empty tenant of a scope stands for, as the node that it was registered with says; empty
  // when it was made without one: then scopes must name their tenant.
  const std::string& tenant() const { return tenant_; }
  void set_tenant(std::string tenant) { tenant_ = std::move(tenant); }

 private:
  NamespaceHandle(std::string name, const Namespace& fields, const KeyRules& rules,
                  PayloadMap payload_map);

  std::string name_;
  std::string tenant_;
  Namespace fields_;
  KeyRules rules_;
  PayloadMap payload_map_;
};

}  // namespace cairn
