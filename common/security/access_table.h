// AccessTable: which identities may call, in which roles, for which tenants: an access file,
// parsed.
//
// One entry a line, `#` begins a comment:
//
//     identity  role[,role]...  tenant[,tenant]... | * | -
//
// An identity is `spiffe://DOMAIN/PATH` or `cn:NAME` of a client certificate, or `token:NAME` of a
// token file. `*` stands for all tenants, `-` for none. Parsing is strict and bounded: a line that
// means nothing is an error, never passed over. Immutable; thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/rpc/role.h"

namespace cairn {

inline constexpr size_t kAccessEntriesMax = 16384;
inline constexpr size_t kTenantsPerEntryMax = 256;
inline constexpr size_t kIdentityBytesMax = 256;

struct AccessEntry {
  RoleSet roles;
  std::vector<std::string> tenants;
  bool all_tenants = false;

  friend bool operator==(const AccessEntry&, const AccessEntry&) = default;
};

class AccessTable {
 public:
  // INVALID_ARGUMENT naming `file`, the line, what is wrong with it and what to write.
  static absl::StatusOr<AccessTable> Parse(absl::string_view text, absl::string_view file);

  // Null for an identity that is not listed. Valid as long as the table.
  const AccessEntry* Find(absl::string_view identity) const;
  size_t size() const { return entries_.size(); }

 private:
  absl::Status AddLine(absl::string_view line);

  absl::flat_hash_map<std::string, AccessEntry> entries_;
};

}  // namespace cairn
