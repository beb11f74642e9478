// Extra: what the token ids of a block do not say, as it enters the block's key.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace cairn {

enum class ExtraKind : uint8_t {
  kMedia = 1,
  kEmbedding = 2,
};

inline constexpr size_t kExtraDigestBytes = 32;
// One item's encoding: kind, digest, start.
inline constexpr size_t kExtraItemBytes = 1 + kExtraDigestBytes + 4;
inline constexpr size_t kExtraItemsMax = 1024;
inline constexpr size_t kExtraBytesMax = kExtraItemsMax * kExtraItemBytes;

// One media item or embedding that touches a block.
struct ExtraItem {
  ExtraKind kind = ExtraKind::kMedia;
  std::array<uint8_t, kExtraDigestBytes> digest{};
  int32_t start = 0;  // Relative to the block's first token; negative when it began before.

  friend bool operator==(const ExtraItem&, const ExtraItem&) = default;
};

// INVALID_ARGUMENT for a kind that is not 1 or 2 or for more than kExtraItemsMax items.
absl::Status ValidateExtra(absl::Span<const ExtraItem> items);

// The canonical bytes: items ordered by (start, kind, digest), whatever their order in `items`;
// empty for none. REQUIRES: ValidateExtra says OK.
std::string EncodeExtra(absl::Span<const ExtraItem> items);

// OK when `extra` is what EncodeExtra gives for some items: whole items, known kinds, in order. For
// bytes that came from outside already encoded.
absl::Status ValidateEncodedExtra(absl::string_view extra);

}  // namespace cairn
