#include "common/rpc/prompt_conversion.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/rpc/field_status.h"
#include "common/rpc/id_conversion.h"
#include "common/wire/limits.h"

namespace cairn {
namespace {

using google::protobuf::RepeatedPtrField;

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

absl::StatusOr<ExtraItem> ItemFromProto(const v1::ExtraItem& message) {
  if (message.kind() != v1::ExtraItem::KIND_MEDIA &&
      message.kind() != v1::ExtraItem::KIND_EMBEDDING) {
    return Invalid("kind is ", static_cast<int>(message.kind()),
                   "; must be 1 (media) or 2 (embedding)");
  }
  if (message.digest().size() != kExtraDigestBytes) {
    return WrongLength("digest", message.digest().size(), "32");
  }
  ExtraItem item;
  item.kind = static_cast<ExtraKind>(message.kind());
  std::copy(message.digest().begin(), message.digest().end(), item.digest.begin());
  item.start = message.start();
  return item;
}

absl::StatusOr<std::vector<ExtraItem>> ItemsFromProto(const v1::BlockExtra& message) {
  const auto count = static_cast<size_t>(message.items_size());
  if (count > kExtraItemsPerBlockMax) {
    return Invalid("has ", count, " items; at most ", kExtraItemsPerBlockMax);
  }
  std::vector<ExtraItem> items;
  items.reserve(count);
  for (const v1::ExtraItem& proto : message.items()) {
    absl::StatusOr<ExtraItem> item = ItemFromProto(proto);
    if (!item.ok()) return InField(absl::StrCat("items[", items.size(), "]"), item.status());
    items.push_back(*item);
  }
  return items;
}

// `ids` receives the region's ids; the returned region points at them and at the message's tokens.
absl::StatusOr<Region> RegionFromProto(const v1::Region& message, std::vector<std::string>* ids) {
  if (message.tokens().empty() && message.external_ids().empty()) {
    return Invalid("has no tokens; a prompt has at least one, or ids under key scheme 2");
  }
  absl::StatusOr<Scope> scope = ScopeFromProto(message.scope());
  if (!scope.ok()) return scope.status();
  absl::StatusOr<std::vector<std::string>> external_ids =
      ExternalIdsFromProto(message.external_ids(), kKeysPerLookupMax);
  if (!external_ids.ok()) return external_ids.status();
  *ids = *std::move(external_ids);
  Region region;
  region.scope = *std::move(scope);
  region.tokens =
      absl::MakeConstSpan(message.tokens().data(), static_cast<size_t>(message.tokens().size()));
  region.external_ids = *ids;
  return region;
}

absl::Status CheckShape(const v1::Prompt& message) {
  if (message.keys().empty() == message.regions().empty()) {
    return Invalid(message.keys().empty() ? "is empty" : "has both regions and keys",
                   "; give regions or keys");
  }
  if (!message.keys().empty() && !message.extras().empty()) {
    return Invalid("extras: go with regions only; keys already hold them");
  }
  if (static_cast<size_t>(message.regions_size()) > kRegionsMax) {
    return Invalid("has ", message.regions_size(), " regions; at most ", kRegionsMax);
  }
  uint64_t tokens = 0;
  for (const v1::Region& region : message.regions()) {
    tokens += static_cast<uint64_t>(region.tokens_size());
  }
  if (tokens > kTokensPerCallMax) {
    return Invalid("has ", tokens, " tokens; at most ", kTokensPerCallMax,
                   ", or look longer prompts up by keys");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PromptFields> PromptFromProto(const v1::Prompt& message) {
  if (absl::Status status = CheckShape(message); !status.ok()) return status;
  PromptFields prompt;
  absl::StatusOr<std::vector<BlockKey>> keys =
      KeysFromProto(message.keys(), "keys", kKeysPerLookupMax);
  if (!keys.ok()) return keys.status();
  prompt.keys = *std::move(keys);
  prompt.external_ids.resize(static_cast<size_t>(message.regions_size()));
  for (int i = 0; i < message.regions_size(); ++i) {
    absl::StatusOr<Region> region =
        RegionFromProto(message.regions(i), &prompt.external_ids[static_cast<size_t>(i)]);
    if (!region.ok()) return InField(absl::StrCat("regions[", i, "]"), region.status());
    prompt.regions.push_back(*std::move(region));
  }
  absl::StatusOr<ExtrasByBlock> extras = ExtrasFromProto(message.extras(), kTokensPerCallMax);
  if (!extras.ok()) return extras.status();
  prompt.extras = *std::move(extras);
  return prompt;
}

absl::StatusOr<Scope> ScopeFromProto(const v1::Scope& message) {
  Scope scope{message.tenant(), message.adapter(), message.salt()};
  if (absl::Status status = ValidateScope(scope); !status.ok()) return status;
  return scope;
}

v1::Scope ScopeToProto(const Scope& scope) {
  v1::Scope message;
  message.set_tenant(scope.tenant);
  message.set_adapter(scope.adapter);
  message.set_salt(scope.salt);
  return message;
}

absl::StatusOr<ExtrasByBlock> ExtrasFromProto(const RepeatedPtrField<v1::BlockExtra>& messages,
                                              size_t blocks_max) {
  ExtrasByBlock extras;
  for (const v1::BlockExtra& message : messages) {
    if (message.block() >= blocks_max) {
      return Invalid("extras: block ", message.block(), "; must be under ", blocks_max);
    }
    absl::StatusOr<std::vector<ExtraItem>> items = ItemsFromProto(message);
    if (!items.ok()) {
      return InField(absl::StrCat("extras of block ", message.block()), items.status());
    }
    if (!extras.emplace(message.block(), *std::move(items)).second) {
      return Invalid("extras: block ", message.block(), " comes twice");
    }
  }
  return extras;
}

void ExtrasToProto(const ExtrasByBlock& extras, RepeatedPtrField<v1::BlockExtra>* messages) {
  for (const auto& [block, items] : extras) {
    v1::BlockExtra* const message = messages->Add();
    message->set_block(block);
    for (const ExtraItem& item : items) {
      v1::ExtraItem* const proto = message->add_items();
      proto->set_kind(static_cast<v1::ExtraItem::Kind>(item.kind));
      proto->set_digest(item.digest.data(), item.digest.size());
      proto->set_start(item.start);
    }
  }
}

absl::StatusOr<std::vector<std::string>> ExternalIdsFromProto(
    const RepeatedPtrField<std::string>& ids, size_t ids_max) {
  const auto count = static_cast<size_t>(ids.size());
  if (count > ids_max) return Invalid("external_ids: ", count, " ids; at most ", ids_max);
  for (int i = 0; i < ids.size(); ++i) {
    if (ids[i].empty() || ids[i].size() > kExternalIdBytesMax) {
      return WrongLength(absl::StrCat("external_ids[", i, "]"), ids[i].size(),
                         absl::StrCat("1 to ", kExternalIdBytesMax));
    }
  }
  return std::vector<std::string>(ids.begin(), ids.end());
}

v1::Prompt PromptToProto(absl::Span<const Region> regions, const ExtrasByBlock& extras) {
  v1::Prompt message;
  for (const Region& region : regions) {
    v1::Region* const proto = message.add_regions();
    *proto->mutable_scope() = ScopeToProto(region.scope);
    proto->mutable_tokens()->Add(region.tokens.begin(), region.tokens.end());
    for (const std::string& id : region.external_ids) proto->add_external_ids(id);
  }
  ExtrasToProto(extras, message.mutable_extras());
  return message;
}

}  // namespace cairn
