#include "common/security/access_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/security/text_lines.h"
#include "common/wire/limits.h"

namespace cairn {
namespace {

absl::Status Wrong(absl::string_view why) { return absl::InvalidArgumentError(why); }

absl::Status CheckIdentity(absl::string_view identity) {
  if (identity.size() > kIdentityBytesMax) {
    return Wrong(absl::StrCat("the identity ", Shown(identity), " is longer than ",
                              kIdentityBytesMax, " bytes"));
  }
  absl::string_view rest = identity;
  if (absl::ConsumePrefix(&rest, "spiffe://")) {
    const size_t slash = rest.find('/');
    if (slash == absl::string_view::npos || slash == 0 || slash + 1 == rest.size()) {
      return Wrong(absl::StrCat(Shown(identity), " is no SPIFFE id; write spiffe://DOMAIN/PATH"));
    }
    return absl::OkStatus();
  }
  if ((absl::ConsumePrefix(&rest, "cn:") || absl::ConsumePrefix(&rest, "token:")) &&
      !rest.empty()) {
    return absl::OkStatus();
  }
  return Wrong(absl::StrCat(Shown(identity),
                            " is no identity; write spiffe://DOMAIN/PATH, cn:NAME or token:NAME"));
}

absl::StatusOr<RoleSet> ParseRoles(absl::string_view field) {
  RoleSet roles;
  for (const absl::string_view name : absl::StrSplit(field, ',')) {
    const std::optional<Role> role = RoleNamed(name);
    if (!role.has_value()) {
      return Wrong(absl::StrCat(Shown(name), " is no role; write one of ",
                                absl::StrJoin(kRoleNames, ", "), ", with commas between several"));
    }
    if (roles.Has(*role)) return Wrong(absl::StrCat("the role ", name, " comes twice; remove one"));
    roles.Add(*role);
  }
  return roles;
}

absl::Status ParseTenants(absl::string_view field, AccessEntry* entry) {
  if (field == "-") return absl::OkStatus();
  if (field == "*") {
    entry->all_tenants = true;
    return absl::OkStatus();
  }
  for (const absl::string_view tenant : absl::StrSplit(field, ',')) {
    if (tenant.empty() || tenant.size() > kNameBytesMax || tenant == "*" || tenant == "-") {
      return Wrong(absl::StrCat(Shown(tenant), " is no tenant; write names of 1 to ", kNameBytesMax,
                                " bytes with commas between them, or only * for all, - for none"));
    }
    if (std::find(entry->tenants.begin(), entry->tenants.end(), tenant) != entry->tenants.end()) {
      return Wrong(absl::StrCat("the tenant ", Shown(tenant), " comes twice; remove one"));
    }
    if (entry->tenants.size() == kTenantsPerEntryMax) {
      return Wrong(absl::StrCat("more than ", kTenantsPerEntryMax, " tenants; write * for all"));
    }
    entry->tenants.emplace_back(tenant);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<AccessTable> AccessTable::Parse(absl::string_view text, absl::string_view file) {
  AccessTable table;
  const absl::Status status =
      ForEachLine(text, file, [&table](absl::string_view line) { return table.AddLine(line); });
  if (!status.ok()) return status;
  return table;
}

absl::Status AccessTable::AddLine(absl::string_view line) {
  const std::vector<absl::string_view> fields = FieldsOf(line);
  if (fields.size() != 3) {
    return Wrong(absl::StrCat(fields.size(), " fields; write: identity role[,role] tenant[,tenant]",
                              " (* for all tenants, - for none)"));
  }
  if (absl::Status status = CheckIdentity(fields[0]); !status.ok()) return status;
  AccessEntry entry;
  const absl::StatusOr<RoleSet> roles = ParseRoles(fields[1]);
  if (!roles.ok()) return roles.status();
  entry.roles = *roles;
  if (absl::Status status = ParseTenants(fields[2], &entry); !status.ok()) return status;
  if (entries_.size() == kAccessEntriesMax) {
    return Wrong(absl::StrCat("more than ", kAccessEntriesMax, " identities"));
  }
  if (!entries_.try_emplace(std::string(fields[0]), std::move(entry)).second) {
    return Wrong(
        absl::StrCat("the identity ", Shown(fields[0]), " comes twice; join the lines to one"));
  }
  return absl::OkStatus();
}

const AccessEntry* AccessTable::Find(absl::string_view identity) const {
  const auto found = entries_.find(identity);
  return found == entries_.end() ? nullptr : &found->second;
}

}  // namespace cairn
