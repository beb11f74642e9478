// Promises held against every text: parsing fails with INVALID_ARGUMENT and a printable message
// that names the file and repeats nothing of a token file but names, or gives a table within its
// bounds whose every line can be found again.
#include "tests/fuzz/security_files_fuzz.h"

#include <algorithm>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"
#include "common/base/hex.h"
#include "common/security/access_table.h"
#include "common/security/public_prefixes.h"
#include "common/security/text_lines.h"
#include "common/security/token_table.h"

namespace cairn::testing {
namespace {

constexpr size_t kMessageBytesMax = 1024;

void CheckRefusal(const absl::Status& status) {
  CAIRN_CHECK(absl::IsInvalidArgument(status));
  CAIRN_CHECK(absl::StartsWith(status.message(), "file:"));
  CAIRN_CHECK(status.message().size() <= kMessageBytesMax);
  CAIRN_CHECK(std::all_of(status.message().begin(), status.message().end(),
                          [](char c) { return 0x20 <= c && c < 0x7f; }));
}

bool RunAccess(absl::string_view text) {
  const absl::StatusOr<AccessTable> table = AccessTable::Parse(text, "file");
  if (!table.ok()) {
    CheckRefusal(table.status());
    return false;
  }
  size_t lines = 0;
  const absl::Status again = ForEachLine(text, "file", [&](absl::string_view line) {
    ++lines;
    const AccessEntry* const entry = table->Find(FieldsOf(line).front());
    CAIRN_CHECK(entry != nullptr && !entry->roles.empty());
    CAIRN_CHECK(entry->tenants.size() <= kTenantsPerEntryMax);
    CAIRN_CHECK(!entry->all_tenants || entry->tenants.empty());
    return absl::OkStatus();
  });
  CAIRN_CHECK_OK(again);
  CAIRN_CHECK(lines == table->size() && lines <= kAccessEntriesMax);
  CAIRN_CHECK(table->Find("") == nullptr);
  return true;
}

bool RunTokens(absl::string_view text) {
  const absl::StatusOr<TokenTable> table = TokenTable::Parse(text, "file");
  if (!table.ok()) {
    CheckRefusal(table.status());
    return false;
  }
  CAIRN_CHECK(table->size() <= kTokensMax);
  // Nothing that stands in the file is a token of it.
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    for (const absl::string_view field : FieldsOf(line)) {
      CAIRN_CHECK(!table->Find(field).has_value());
    }
  }
  return true;
}

bool RunPublicPrefixes(absl::string_view text) {
  const absl::StatusOr<PublicPrefixes> prefixes = PublicPrefixes::Parse(text, "file");
  if (!prefixes.ok()) {
    CheckRefusal(prefixes.status());
    return false;
  }
  size_t lines = 0;
  const absl::Status again = ForEachLine(text, "file", [&](absl::string_view line) {
    ++lines;
    CAIRN_CHECK(prefixes->EndsWith(*BlockKey::FromBytes(*FromHex(line))));
    return absl::OkStatus();
  });
  CAIRN_CHECK_OK(again);
  CAIRN_CHECK(lines == prefixes->last_keys().size() && lines <= kPublicPrefixesMax);
  return true;
}

}  // namespace

std::string SecurityFuzzInput(SecurityFile file, absl::string_view text) {
  return absl::StrCat(std::string(1, static_cast<char>(file)), text);
}

bool ParsesAsSecurityFile(SecurityFile file, absl::string_view text) {
  switch (file) {
    case SecurityFile::kAccess:
      return RunAccess(text);
    case SecurityFile::kTokens:
      return RunTokens(text);
    case SecurityFile::kPublicPrefixes:
      return RunPublicPrefixes(text);
  }
  return false;
}

}  // namespace cairn::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using cairn::testing::SecurityFile;
  if (size == 0) return 0;
  // A heap block of exactly its size, so that the address sanitizer sees a read past it.
  const std::unique_ptr<char[]> text(new char[size - 1]);
  std::copy(data + 1, data + size, text.get());
  cairn::testing::ParsesAsSecurityFile(
      static_cast<SecurityFile>(data[0] % cairn::testing::kSecurityFiles), {text.get(), size - 1});
  return 0;
}
