// TokenTable: the bearer tokens that are good, known only by their SHA-256: a token file, parsed.
//
// One token a line, `#` begins a comment:
//
//     name  sha256-of-the-token-as-64-hex-digits
//
// A name may have several tokens, so that one can be exchanged for another without a gap. Parsing
// is strict and bounded. Immutable; thread-safe. Tokens are compared by their whole digest in
// constant time; which bucket a digest falls into tells nothing, as nobody can choose it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/identity/sha256.h"

namespace cairn {

inline constexpr size_t kTokensMax = 16384;
inline constexpr size_t kTokenBytesMin = 16;
inline constexpr size_t kTokenBytesMax = 4096;

class TokenTable {
 public:
  // INVALID_ARGUMENT naming `file`, the line, what is wrong with it and what to write.
  static absl::StatusOr<TokenTable> Parse(absl::string_view text, absl::string_view file);

  // The name of the token; nothing when it is not one of these.
  std::optional<absl::string_view> Find(absl::string_view token) const;
  size_t size() const { return tokens_.size(); }

 private:
  struct Token {
    Sha256Digest digest;
    std::string name;
  };

  absl::Status AddLine(absl::string_view line);

  std::vector<Token> tokens_;
  absl::flat_hash_map<uint64_t, std::vector<size_t>> by_prefix_;  // First bytes to tokens_.
};

}  // namespace cairn
