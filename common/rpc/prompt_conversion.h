// Prompts between the wire and common/identity: scopes, regions, extra items.
#pragma once

#include <google/protobuf/repeated_field.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/v1/block.pb.h"
#include "common/base/bytes16.h"
#include "common/identity/key_chain.h"
#include "common/identity/scope.h"

namespace cairn {

inline constexpr size_t kExtraItemsPerBlockMax = 64;

// What a cairn.v1.Prompt asks for: either regions or keys. Move-only: the regions' spans point into
// `external_ids` and, for tokens, into the message, which must outlive it.
struct PromptFields {
  PromptFields() = default;
  PromptFields(PromptFields&&) = default;
  PromptFields& operator=(PromptFields&&) = default;

  std::vector<Region> regions;
  ExtrasByBlock extras;
  std::vector<BlockKey> keys;

  // By region.
  std::vector<std::vector<std::string>> external_ids;
};

// INVALID_ARGUMENT, naming the field, when it has both regions and keys or neither, over two
// regions, a region with neither tokens nor ids, or when a part of it is wrong by itself. Bounds:
// tokens by kTokensPerCallMax, keys by kKeysPerLookupMax. What depends on the namespace (whole
// blocks, key scheme, extras past the end) is PromptKeys' to say; tenants are the caller's to
// resolve.
absl::StatusOr<PromptFields> PromptFromProto(const v1::Prompt& message);

// INVALID_ARGUMENT naming the field; the tenant may be empty.
absl::StatusOr<Scope> ScopeFromProto(const v1::Scope& message);
v1::Scope ScopeToProto(const Scope& scope);

// Extra items of the first `blocks_max` blocks. INVALID_ARGUMENT for a block named twice or beyond
// them, over kExtraItemsPerBlockMax items, an unknown kind, or a digest that is not 32 bytes.
absl::StatusOr<ExtrasByBlock> ExtrasFromProto(
    const google::protobuf::RepeatedPtrField<v1::BlockExtra>& messages, size_t blocks_max);
void ExtrasToProto(const ExtrasByBlock& extras,
                   google::protobuf::RepeatedPtrField<v1::BlockExtra>* messages);

// Ids of key scheme 2. INVALID_ARGUMENT for more than `ids_max`, or one that has not 1 to
// kExternalIdBytesMax bytes.
absl::StatusOr<std::vector<std::string>> ExternalIdsFromProto(
    const google::protobuf::RepeatedPtrField<std::string>& ids, size_t ids_max);

// The message of a prompt by regions.
v1::Prompt PromptToProto(absl::Span<const Region> regions, const ExtrasByBlock& extras);

}  // namespace cairn
