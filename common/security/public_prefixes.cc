#include "common/security/public_prefixes.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/hex.h"
#include "common/security/text_lines.h"

namespace cairn {

absl::StatusOr<PublicPrefixes> PublicPrefixes::Parse(absl::string_view text,
                                                     absl::string_view file) {
  PublicPrefixes prefixes;
  const absl::Status status = ForEachLine(text, file, [&](absl::string_view line) -> absl::Status {
    const std::vector<absl::string_view> fields = FieldsOf(line);
    const absl::StatusOr<std::string> bytes = FromHex(fields.front());
    const std::optional<BlockKey> key = bytes.ok() ? BlockKey::FromBytes(*bytes) : std::nullopt;
    if (!key.has_value() || fields.size() > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(Shown(line),
                       ": write the key of a prefix's last block, 32 hexadecimal digits as "
                       "`cairnctl keys --public` prints them, and a comment after #"));
    }
    if (!prefixes.last_keys_.insert(*key).second) {
      return absl::InvalidArgumentError(absl::StrCat(Shown(line), ": has a line already"));
    }
    if (prefixes.last_keys_.size() > kPublicPrefixesMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("more than ", kPublicPrefixesMax, " prefixes; take out those that are old"));
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return prefixes;
}

bool PublicPrefixes::IsWithin(const PublicPrefixes& other) const {
  return std::all_of(last_keys_.begin(), last_keys_.end(),
                     [&other](const BlockKey& key) { return other.EndsWith(key); });
}

}  // namespace cairn
