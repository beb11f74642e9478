#include "client/ctl/usage_error.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace cairn::ctl {
namespace {

constexpr char kUsageUrl[] = "cairnctl/usage";

// Insertions, removals and replacements from `a` to `b`.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

absl::Status UsageError(absl::string_view message) {
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kUsageUrl, absl::Cord());
  return status;
}

bool IsUsageError(const absl::Status& status) { return status.GetPayload(kUsageUrl).has_value(); }

std::string TextOf(const absl::Status& status) {
  return absl::StrCat(absl::StatusCodeToString(status.code()), ": ", status.message());
}

std::string Suggestion(absl::string_view unknown, const std::vector<std::string>& known) {
  const std::string* nearest = nullptr;
  size_t least = std::max<size_t>(2, unknown.size() / 2);
  for (const std::string& candidate : known) {
    const size_t distance = EditDistance(unknown, candidate);
    if (distance > least || (nearest != nullptr && distance == least)) continue;
    least = distance;
    nearest = &candidate;
  }
  return nearest == nullptr ? "" : absl::StrCat("; did you mean ", *nearest, "?");
}

}  // namespace cairn::ctl
