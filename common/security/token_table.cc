#include "common/security/token_table.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/hex.h"
#include "common/security/text_lines.h"

namespace cairn {
namespace {

constexpr size_t kTokenNameBytesMax = 128;

absl::Status Wrong(absl::string_view why) { return absl::InvalidArgumentError(why); }

bool IsNameByte(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_';
}

uint64_t PrefixOf(const Sha256Digest& digest) {
  uint64_t prefix = 0;
  std::memcpy(&prefix, digest.data(), sizeof(prefix));
  return prefix;
}

bool SameDigest(const Sha256Digest& a, const Sha256Digest& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

absl::StatusOr<TokenTable> TokenTable::Parse(absl::string_view text, absl::string_view file) {
  TokenTable table;
  const absl::Status status =
      ForEachLine(text, file, [&table](absl::string_view line) { return table.AddLine(line); });
  if (!status.ok()) return status;
  return table;
}

absl::Status TokenTable::AddLine(absl::string_view line) {
  const std::vector<absl::string_view> fields = FieldsOf(line);
  // Fields are not repeated in messages: a token itself may stand here by mistake.
  if (fields.size() != 2) {
    return Wrong(absl::StrCat(fields.size(), " fields; write: name sha256-of-the-token-in-hex"));
  }
  if (fields[0].size() > kTokenNameBytesMax ||
      !std::all_of(fields[0].begin(), fields[0].end(), IsNameByte)) {
    return Wrong(absl::StrCat("the name is not 1 to ", kTokenNameBytesMax,
                              " letters, digits, '.', '-' or '_'"));
  }
  const absl::StatusOr<std::string> bytes = FromHex(fields[1]);
  Token token{.digest = {}, .name = std::string(fields[0])};
  if (!bytes.ok() || bytes->size() != token.digest.size()) {
    return Wrong(absl::StrCat("the digest of ", fields[0],
                              " is not 64 hex digits; write what "
                              "`printf %s TOKEN | sha256sum` prints, never the token"));
  }
  std::copy(bytes->begin(), bytes->end(), token.digest.begin());
  if (tokens_.size() == kTokensMax) return Wrong(absl::StrCat("more than ", kTokensMax, " tokens"));
  std::vector<size_t>& bucket = by_prefix_[PrefixOf(token.digest)];
  for (const size_t other : bucket) {
    if (SameDigest(tokens_[other].digest, token.digest)) {
      return Wrong(absl::StrCat("the digest of ", fields[0], " is that of ", tokens_[other].name,
                                " above; give each its own token"));
    }
  }
  bucket.push_back(tokens_.size());
  tokens_.push_back(std::move(token));
  return absl::OkStatus();
}

std::optional<absl::string_view> TokenTable::Find(absl::string_view token) const {
  if (token.size() < kTokenBytesMin || token.size() > kTokenBytesMax) return std::nullopt;
  const Sha256Digest digest = Sha256(token);
  const auto bucket = by_prefix_.find(PrefixOf(digest));
  if (bucket == by_prefix_.end()) return std::nullopt;
  for (const size_t index : bucket->second) {
    if (SameDigest(tokens_[index].digest, digest)) return tokens_[index].name;
  }
  return std::nullopt;
}

}  // namespace cairn
