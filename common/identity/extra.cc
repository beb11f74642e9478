#include "common/identity/extra.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/identity/frame.h"

namespace cairn {
namespace {

bool InOrder(const ExtraItem& a, const ExtraItem& b) {
  return std::tie(a.start, a.kind, a.digest) < std::tie(b.start, b.kind, b.digest);
}

ExtraItem DecodeItem(const char* bytes) {
  ExtraItem item;
  item.kind = static_cast<ExtraKind>(bytes[0]);
  std::memcpy(item.digest.data(), bytes + 1, kExtraDigestBytes);
  uint32_t start = 0;
  for (size_t i = 0; i < 4; ++i) {
    const auto byte = static_cast<uint8_t>(bytes[1 + kExtraDigestBytes + i]);
    start |= static_cast<uint32_t>(byte) << (8 * i);
  }
  item.start = static_cast<int32_t>(start);
  return item;
}

}  // namespace

absl::Status ValidateExtra(absl::Span<const ExtraItem> items) {
  if (items.size() > kExtraItemsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("extra has ", items.size(), " items; allowed: up to ", kExtraItemsMax));
  }
  for (const ExtraItem& item : items) {
    if (item.kind == ExtraKind::kMedia || item.kind == ExtraKind::kEmbedding) continue;
    return absl::InvalidArgumentError(absl::StrCat("extra's kind is ",
                                                   static_cast<uint32_t>(item.kind),
                                                   "; allowed: 1 (media), 2 (embedding)"));
  }
  return absl::OkStatus();
}

std::string EncodeExtra(absl::Span<const ExtraItem> items) {
  std::vector<ExtraItem> sorted(items.begin(), items.end());
  std::sort(sorted.begin(), sorted.end(), InOrder);
  std::string out;
  out.reserve(sorted.size() * kExtraItemBytes);
  for (const ExtraItem& item : sorted) {
    out.push_back(static_cast<char>(item.kind));
    out.append(reinterpret_cast<const char*>(item.digest.data()), item.digest.size());
    AppendU32(&out, static_cast<uint32_t>(item.start));
  }
  CAIRN_CHECK(out.size() == items.size() * kExtraItemBytes);
  return out;
}

absl::Status ValidateEncodedExtra(absl::string_view extra) {
  if (extra.size() % kExtraItemBytes != 0 || extra.size() > kExtraBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("extra has ", extra.size(),
                                                   " bytes; allowed: multiples of ",
                                                   kExtraItemBytes, " up to ", kExtraBytesMax));
  }
  std::vector<ExtraItem> items;
  for (size_t at = 0; at < extra.size(); at += kExtraItemBytes) {
    items.push_back(DecodeItem(extra.data() + at));
  }
  absl::Status status = ValidateExtra(items);
  if (!status.ok()) return status;
  if (std::is_sorted(items.begin(), items.end(), InOrder)) return absl::OkStatus();
  return absl::InvalidArgumentError("extra's items are not ordered by (start, kind, digest)");
}

}  // namespace cairn
