// Namespaces, scopes and prompts in the JSON form of the identity goldens (tests/vectors).
//
// Failures are INVALID_ARGUMENT and name the field. What the fields mean together is for
// common/identity to check.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/ctl/json_reader.h"
#include "common/identity/key_chain.h"
#include "common/identity/namespace.h"

namespace cairn::ctl {

// {"model", "revision", "numerics_hex", "key_scheme", "layout": {"version", "block_tokens",
// "slices", "groups": [{"kind", "required", "layers", ...}]}}. `numerics_hex`, and the fields of a
// group that most leave 0 (scales, window_tokens, state_stride_blocks, opaque_bytes, reserved), may
// be left out.
absl::StatusOr<Namespace> NamespaceFromJson(const JsonReader& json);

// A prompt that owns its tokens.
struct PromptInput {
  struct OwnedRegion {
    Scope scope;
    std::vector<uint32_t> tokens;
    std::vector<std::string> external_ids;
  };
  std::vector<OwnedRegion> regions;
  ExtrasByBlock extras;

  // As key_chain.h takes them; they point into this object.
  std::vector<Region> Regions() const;
};

// {"regions": [{"scope": {"tenant", "adapter", "salt_hex"}, "tokens": [...], "external_ids_hex":
// [...]}], "extras": {"0": [{"kind", "digest_hex", "start"}]}}, with other fields beside them. In a
// scope adapter and salt_hex may be left out, and extras too.
absl::StatusOr<PromptInput> PromptFromJson(const JsonReader& json);

}  // namespace cairn::ctl
